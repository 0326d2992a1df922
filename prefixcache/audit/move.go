package audit

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"github.com/unfray/unfray/vocab"
)

// site is a place at which prompts that begin alike have a value.
type site struct {
	at     int    // byte
	head   uint64 // hash of the text before it
	cause  Cause
	holder string // the placeholder's name, if there is one
	lost   int
}

// maxSites bounds the places that are changed in one round.
const maxSites = 64

// sites are the places of findings with one of the causes, those with the
// greatest loss first.
func sites(views []view, pairs []*pair, findings []*finding, causes ...Cause) []site {
	by := map[site]int{}
	for i, f := range findings {
		if f == nil || !slices.Contains(causes, f.cause) {
			continue
		}
		p := pairs[i]
		name := p.placeholder()
		at := f.new.lo
		if name != "" {
			at = segmentStart(p.newP.Segments, name, p.l)
		} else if f.cause == Content {
			continue // what the prompt is about
		}
		lost, _ := p.lost(f)
		by[site{at: at, head: maphashOf(views[i].text[:at]), cause: f.cause, holder: name}] += lost
	}
	list := make([]site, 0, len(by))
	for s, lost := range by {
		s.lost = lost
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b site) int {
		if a.lost != b.lost {
			return b.lost - a.lost
		}
		return a.at - b.at
	})
	return list[:min(len(list), maxSites)]
}

func segmentStart(list []Segment, name string, at int) int {
	start := at
	for _, s := range list {
		if s.Name == name && s.Start <= at && at <= s.End {
			start = s.Start
		}
	}
	return start
}

// find gives the bytes of a text that stand at one of the sites, which are of
// texts that begin in the same way.
func find(list []site, v *view, p *Prompt) (span, *site) {
	for k := range list {
		s := &list[k]
		if s.at > v.size || maphashOf(v.text[:s.at]) != s.head {
			continue
		}
		if s.holder != "" {
			for _, g := range p.Segments {
				if g.Name == s.holder && g.Start == s.at {
					return span{g.Start, g.End}, s
				}
			}
			continue
		}
		rest := v.text[s.at:min(v.size, s.at+valueAfter)]
		var form *regexp.Regexp
		switch s.cause {
		case Timestamp:
			form = times
		case RandomID:
			form = ids
		case Counter:
			form = numbers
		case ToolsChange:
			if n := listEnd(v.text[s.at:v.size]); n > 0 {
				return span{s.at, s.at + n}, s
			}
			continue
		default:
			continue
		}
		if m := form.FindIndex(rest); m != nil && m[0] == 0 {
			return span{s.at, s.at + m[1]}, s
		}
	}
	return span{}, nil
}

// listEnd is the length of the list of tools that text begins with.
func listEnd(text []byte) int {
	if len(text) > 0 && text[0] == '[' {
		budget := jsonBudget
		_, n, _ := readJSON(text, &budget)
		return n
	}
	_, n := jsonLines(text)
	return n
}

// differing gives, for prompts with short other text before much that is equal,
// the bytes of that text.
func differing(pairs []*pair, findings []*finding) map[int]span {
	list := map[int]span{}
	for i, f := range findings {
		if f == nil || f.cause != Content || pairs[i].placeholder() != "" || f.old.len() > maxPiece || f.new.len() > maxPiece {
			continue
		}
		if lost, _ := pairs[i].lost(f); lost == 0 {
			continue
		}
		list[i] = f.new
		if _, ok := list[pairs[i].j]; !ok && f.old.hi <= pairs[i].old.size {
			list[pairs[i].j] = f.old
		}
	}
	return list
}

// volatile are the causes whose values may be moved.
var volatile = []Cause{Timestamp, RandomID, Counter, Content}

// maxRounds bounds how often values are looked for and moved: a prompt may have
// several, of which only the first shows at a time.
const maxRounds = 6

// moveValues moves values, with the line or sentence they are in, to the end of
// the last message.
func (s *sample) moveValues() ([]Prompt, int, error) {
	return s.rounds(volatile, func(p *Prompt, v *view, at span) (Prompt, string, bool) {
		piece := s.around(v, at)
		end := (&pair{t: s.t}).opening(v)
		if end <= piece.hi {
			return Prompt{}, "", false
		}
		moved := bytes.Trim(v.text[piece.lo:piece.hi], " \n")
		head, tail := v.text[:piece.lo], v.text[end:v.size]
		middle := v.text[piece.hi:end]
		text := slices.Concat(head, bytes.TrimRight(middle, "\n"), []byte("\n"), moved)
		if end == v.size && bytes.HasSuffix(middle, []byte("\n")) {
			text = append(text, '\n')
		}
		return s.with(p, v, append(text, tail...)), fmt.Sprintf("%q", clip(moved)), true
	}, func(p *Prompt, v *view, at span) []Segment {
		return movedSegments(p.Segments, s.around(v, at))
	})
}

// movedSegments are the segments of a text out of which a piece was taken.
func movedSegments(list []Segment, piece span) []Segment {
	var kept []Segment
	for _, g := range list {
		switch {
		case g.End <= piece.lo:
			kept = append(kept, g)
		case g.Start >= piece.hi:
			kept = append(kept, Segment{g.Name, g.Start - piece.len(), g.End - piece.len()})
		}
	}
	return kept
}

// rounds changes all prompts at the sites of the causes, and looks for sites
// again.
func (s *sample) rounds(causes []Cause, change func(p *Prompt, v *view, at span) (q Prompt, note string, ok bool), segments func(p *Prompt, v *view, at span) []Segment) ([]Prompt, int, error) {
	prompts, views := slices.Clone(s.prompts), slices.Clone(s.views[:len(s.prompts)])
	pairs, findings := s.pairs[:len(s.prompts)], s.findings[:len(s.prompts)]
	changed := make([]bool, len(prompts))
	seen := map[site]bool{}
	for range maxRounds {
		list := slices.DeleteFunc(sites(views, pairs, findings, causes...), func(x site) bool {
			x.lost = 0
			had := seen[x]
			seen[x] = true
			return had
		})
		others := map[int]span{}
		if slices.Contains(causes, Content) {
			others = differing(pairs, findings)
		}
		if len(list)+len(others) == 0 {
			break
		}
		errs, notes := make([]error, len(prompts)), make([]string, len(prompts))
		each(len(prompts), func(i int) {
			if len(prompts[i].Keys.Media) > 0 {
				return
			}
			at, found := find(list, &views[i], &prompts[i])
			if found == nil {
				var ok bool
				if at, ok = others[i]; !ok {
					return
				}
			}
			q, note, ok := change(&prompts[i], &views[i], at)
			if !ok {
				return
			}
			if segments != nil {
				q.Segments = segments(&prompts[i], &views[i], at)
			}
			notes[i] = note
			space := views[i].space
			errs[i] = s.r.view(&views[i], &q)
			views[i].space, prompts[i], changed[i] = space, q, true
		})
		for i, err := range errs {
			if err != nil {
				return nil, 0, err
			}
			if s.note == "" {
				s.note = notes[i]
			}
		}
		pairs, findings = s.again(prompts, views)
	}
	n := 0
	for _, c := range changed {
		if c {
			n++
		}
	}
	return prompts, n, nil
}

// again compares changed prompts.
func (s *sample) again(prompts []Prompt, views []view) ([]*pair, []*finding) {
	a := &audit{opts: s.opts, t: s.t, r: s.r, prompts: prompts, views: views}
	against := a.counterparts()
	pairs, findings := make([]*pair, len(prompts)), make([]*finding, len(prompts))
	each(len(prompts), func(i int) {
		if against[i] < 0 {
			return
		}
		if p, ok := newPair(s.r, views, prompts, against[i], i, s.opts.Separator); ok {
			pairs[i], findings[i] = p, p.classify()
		}
	})
	return pairs, findings
}

// maxPiece is the longest line or sentence that is moved with a value, in bytes.
const maxPiece = 240

// around is the sentence that a value is in, or the line if that is no longer, or
// the value if both are long or all of the prompt. It does not reach over tokens
// that divide messages.
func (s *sample) around(v *view, at span) span {
	lo, hi := 0, v.size
	for i := v.tokenAt(at.lo) - 1; i >= 0 && v.start(i) > at.lo-maxPiece; i-- {
		if mark(s.t, v.ids[i]) {
			lo = int(v.ends[i])
			break
		}
	}
	for i := v.tokenAt(max(at.lo, at.hi-1)) + 1; i < v.n && v.start(i) < at.hi+maxPiece; i++ {
		if mark(s.t, v.ids[i]) {
			hi = v.start(i)
			break
		}
	}
	line := span{lo, hi}
	if i := bytes.LastIndexByte(v.text[lo:at.lo], '\n'); i >= 0 {
		line.lo = lo + i + 1
	}
	newline := 0
	if i := bytes.IndexByte(v.text[at.hi:hi], '\n'); i >= 0 {
		line.hi, newline = at.hi+i, 1
	}
	piece := line
	for _, end := range []string{". ", "! ", "? "} {
		if i := bytes.LastIndex(v.text[piece.lo:at.lo], []byte(end)); i >= 0 {
			piece.lo += i + len(end)
		}
		if i := bytes.Index(v.text[at.hi:piece.hi], []byte(end)); i >= 0 {
			piece.hi = at.hi + i + len(end)
		}
	}
	if piece == line {
		piece.hi += newline
	}
	if piece.len() > maxPiece+at.len() || piece == (span{0, v.size}) {
		return at
	}
	return piece
}

// moveMedia puts what stands for images behind the text.
func (s *sample) moveMedia() ([]Prompt, int, error) {
	prompts := slices.Clone(s.prompts)
	n := 0
	for i := range prompts {
		v, p := &s.views[i], &prompts[i]
		if len(p.Keys.Media) == 0 {
			continue
		}
		end := v.tokenAt((&pair{t: s.t}).opening(v))
		var rest, items []vocab.ID
		media := slices.Clone(p.Keys.Media)
		at, before := 0, 0
		for k := range media {
			m := &media[k]
			if m.Offset < at || m.Offset+m.Length > end {
				return nil, 0, nil
			}
			rest = append(rest, v.ids[at:m.Offset]...)
			items = append(items, v.ids[m.Offset:m.Offset+m.Length]...)
			at = m.Offset + m.Length
			before += m.Length
		}
		rest = append(rest, v.ids[at:end]...)
		at = len(rest)
		for k := range media {
			media[k].Offset = at
			at += media[k].Length
		}
		p.IDs = slices.Concat(rest, items, v.ids[end:v.n])
		p.Text, p.Segments, p.Keys.Media = nil, nil, media
		n++
	}
	return prompts, n, nil
}

var (
	clocks  = regexp.MustCompile(`(\d{1,2}):(\d{2})(:\d{2}(?:[.,]\d+)?)?`)
	unix    = regexp.MustCompile(`^\d{10,19}(?:\.\d+)?$`)
	onClock = regexp.MustCompile(`[T ,]*(?:at )?` + clock)
)

// coarser rounds the times that change.
func (s *sample) coarser(level int) ([]Prompt, int, error) {
	return s.rounds([]Cause{Timestamp}, func(p *Prompt, v *view, at span) (Prompt, string, bool) {
		old := v.text[at.lo:at.hi]
		rounded := coarsen(old, level)
		if bytes.Equal(rounded, old) {
			return Prompt{}, "", false
		}
		return s.with(p, v, slices.Concat(v.text[:at.lo], rounded, v.text[at.hi:v.size])), fmt.Sprintf("%q for %q", clip(rounded), clip(old)), true
	}, nil)
}

// coarsen leaves out the seconds of a time, the minutes too, or the clock.
func coarsen(b []byte, level int) []byte {
	if unix.Match(b) {
		digits := b[:10]
		var n int64
		for _, c := range digits {
			n = n*10 + int64(c-'0')
		}
		n -= n % []int64{60, 3600, 86400}[level]
		return fmt.Appendf(nil, "%d", n)
	}
	switch level {
	case 0:
		return clocks.ReplaceAll(b, []byte("$1:$2"))
	case 1:
		return clocks.ReplaceAll(b, []byte("$1:00"))
	}
	if m := onClock.FindIndex(b); m != nil && m[0] > 0 {
		return slices.Concat(b[:m[0]], b[m[1]:])
	}
	return b
}
