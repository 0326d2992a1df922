package remote

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/vocab"
)

// larkRules reads a grammar as tokenTree writes it: what may come at each rule,
// and the rule after that, "" for the tail.
type larkRules map[string]map[vocab.ID]string

var (
	larkLine = regexp.MustCompile(`^(n\d+): (.*)$`)
	larkAlt  = regexp.MustCompile(`^<\[([0-9,-]+)\]>(?: (n\d+))?$`)
)

func readLark(t *testing.T, source string) larkRules {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(source, "\n"), "\n")
	if lines[0] != "start: n0 <[*]>*" {
		t.Fatalf("the grammar begins with %q", lines[0])
	}
	rules := larkRules{}
	for _, line := range lines[1:] {
		m := larkLine.FindStringSubmatch(line)
		if m == nil || rules[m[1]] != nil {
			t.Fatalf("line %q", line)
		}
		rules[m[1]] = map[vocab.ID]string{}
		for alt := range strings.SplitSeq(m[2], " | ") {
			a := larkAlt.FindStringSubmatch(alt)
			if a == nil {
				t.Fatalf("alternative %q", alt)
			}
			for span := range strings.SplitSeq(a[1], ",") {
				lo, hi, isRange := strings.Cut(span, "-")
				from, _ := strconv.Atoi(lo)
				to := from
				if isRange {
					to, _ = strconv.Atoi(hi)
				}
				for id := from; id <= to; id++ {
					if _, twice := rules[m[1]][vocab.ID(id)]; twice {
						t.Fatalf("token %d is in two alternatives of %s", id, m[1])
					}
					rules[m[1]][vocab.ID(id)] = a[2]
				}
			}
		}
	}
	return rules
}

// compareLark walks a grammar and a replay together over all sequences of tokens
// and reports the first difference.
func compareLark(t *testing.T, rules larkRules, rule string, r *replay) {
	t.Helper()
	mask := r.mask()
	for id := range vocab.ID(r.v.Len()) {
		next, allowed := rules[rule][id]
		switch {
		case allowed != mask.Has(id) && deadEnd(r, id):
			// The grammar leaves out what leads nowhere.
		case allowed != mask.Has(id):
			t.Fatalf("at %s with %q pending, token %d %q: in the grammar %v, in the mask %v", rule, r.pending, id, r.v.Bytes(id), allowed, mask.Has(id))
		case allowed:
			after := *r
			after.accept(id)
			if after.done() != (next == "") {
				t.Fatalf("after token %d: the grammar goes on with %q, %q is pending", id, next, after.pending)
			}
			if !after.done() {
				compareLark(t, rules, next, &after)
			}
		}
	}
}

// deadEnd reports whether no sequence of tokens completes a replay after id.
func deadEnd(r *replay, id vocab.ID) bool {
	if !r.mask().Has(id) {
		return false
	}
	after := *r
	after.accept(id)
	if after.done() {
		return false
	}
	for next := range after.mask().All() {
		if !deadEnd(&after, next) {
			return false
		}
	}
	return true
}

func TestLarkSaysWhatTheMasksSay(t *testing.T) {
	v := backendtest.Vocabulary(backendtest.VocabularyOptions{})
	rng := rand.New(rand.NewPCG(1, 2))
	text := func() vocab.ID {
		for {
			if id := vocab.ID(rng.IntN(v.Len())); v.IsText(id) && !v.IsEOG(id) {
				return id
			}
		}
	}
	for range 300 {
		var pending []byte
		for range 1 + rng.IntN(3) {
			pending = append(pending, v.Bytes(text())...)
		}
		if len(pending) > 8 {
			pending = pending[:8]
		}
		free := &backend.Replay{Pending: pending}
		r := newReplay(v, free)
		tree, err := newTokenTree(r)
		if err != nil {
			t.Fatal(err)
		}
		source, err := tree.lark()
		if err != nil {
			t.Fatal(err)
		}
		compareLark(t, readLark(t, source), "n0", r)

		// The same pending bytes by ways: walks over the free tree, cut where they
		// are complete or at random.
		ways := &backend.Replay{Pending: pending}
		for range 1 + rng.IntN(5) {
			at, w := *r, backend.Way{}
			for !at.done() && rng.IntN(3) > 0 {
				ids := slices.Collect(at.mask().All())
				id := ids[rng.IntN(len(ids))]
				w.Path = append(w.Path, id)
				at.accept(id)
			}
			if w.Rest = at.pending; !at.done() {
				for _, id := range v.Sorted(v.PrefixRange(w.Rest)) {
					if rng.IntN(2) > 0 && !v.IsEOG(id) {
						w.Last = append(w.Last, id)
					}
				}
				slices.Sort(w.Last)
			}
			ways.Ways = append(ways.Ways, w)
		}
		r = newReplay(v, ways)
		if tree, err = newTokenTree(r); err != nil {
			if !slices.ContainsFunc(ways.Ways, func(w backend.Way) bool { return len(w.Rest) == 0 || len(w.Last) > 0 }) {
				continue
			}
			t.Fatal(err)
		}
		if source, err = tree.lark(); err != nil {
			t.Fatal(err)
		}
		compareLark(t, readLark(t, source), "n0", r)
		longest := 0
		for _, w := range ways.Ways {
			n := len(w.Path)
			if len(w.Rest) > 0 {
				n++
			}
			if len(w.Rest) == 0 || len(w.Last) > 0 {
				longest = max(longest, n)
			}
		}
		if tree.depth() != longest {
			t.Errorf("depth %d, the longest way has %d tokens", tree.depth(), longest)
		}
	}
}

// Text tokens may end a generation, too: they would end the replay.
func TestTreeWithoutEndTokens(t *testing.T) {
	sp := vocab.NoSpecials()
	sp.EOG = []vocab.ID{1, 3}
	v, err := vocab.New([][]byte{[]byte("a"), []byte("ab"), []byte("b"), []byte("a"), []byte("abc")}, []vocab.Kind{vocab.Normal, vocab.Normal, vocab.Normal, vocab.Normal, vocab.Normal}, sp)
	if err != nil {
		t.Fatal(err)
	}
	r := newReplay(v, &backend.Replay{Pending: []byte("ab")})
	tree, err := newTokenTree(r)
	if err != nil {
		t.Fatal(err)
	}
	if source, _ := tree.lark(); source != "start: n0 <[*]>*\nn0: <[0]> n1 | <[4]>\nn1: <[2]>\n" {
		t.Errorf("%s", source)
	}
	if tree.depth() != 2 || tree.widest() != 2 {
		t.Errorf("depth %d, widest %d", tree.depth(), tree.widest())
	}
}

func TestTokenSet(t *testing.T) {
	for want, ids := range map[string][]vocab.ID{
		"<[7]>":             {7},
		"<[0-1]>":           {0, 1},
		"<[3,5-7,9,11-12]>": {3, 5, 6, 7, 9, 11, 12},
	} {
		var b strings.Builder
		if writeTokenSet(&b, ids); b.String() != want {
			t.Errorf("%v: %s, want %s", ids, b.String(), want)
		}
	}
}

func TestTreesThatCannotBe(t *testing.T) {
	v := backendtest.Vocabulary(backendtest.VocabularyOptions{})
	var unsupported *backend.UnsupportedError
	if _, err := newTokenTree(newReplay(v, &backend.Replay{Pending: make([]byte, maxReplayBytes+1)})); !errors.As(err, &unsupported) {
		t.Errorf("too many bytes: %v", err)
	}
	if _, err := newTokenTree(newReplay(v, &backend.Replay{Pending: []byte("a"), Ways: []backend.Way{{Rest: []byte("a")}}})); !errors.As(err, &unsupported) {
		t.Errorf("ways that lead nowhere: %v", err)
	}
	var invalid *backend.InvalidTokenError
	if _, err := newTokenTree(newReplay(v, &backend.Replay{Pending: []byte("a"), Ways: []backend.Way{{Path: []vocab.ID{vocab.ID(v.Len())}}}})); !errors.As(err, &invalid) {
		t.Errorf("a token out of the vocabulary: %v", err)
	}
	wide := tokenTree{nodes: []tokenNode{{}}}
	for id := vocab.ID(0); id < 2*maxGrammar/6; id += 2 {
		wide.nodes[0].last = append(wide.nodes[0].last, 100000+id)
	}
	if _, err := wide.lark(); !errors.As(err, &unsupported) {
		t.Errorf("a grammar beyond the limit: %v", err)
	}
}

func TestComposed(t *testing.T) {
	for _, tt := range []struct {
		kind            backend.GrammarKind
		source, literal string
		field, want     string // "": unsupported
	}{
		{backend.Regex, "[0-9]+", "", "regex", "[0-9]+"},
		{backend.Regex, "[0-9]+", "a.b", "regex", `a\.b(?:[0-9]+)`},
		{backend.Regex, "^a|b", "x", "", ""},
		{backend.Regex, "^ab$", "\n", "regex", `\x0a(?:ab)`},
		{backend.Regex, "a^b", "x", "", ""},
		{backend.Regex, "a", "\x00", "", ""},
		{backend.Regex, "a", "\xf0\x9f", "", ""},
		{backend.Regex, "a", "é/", "regex", `é\/(?:a)`},
		{backend.JSONSchema, `{"type": "object"}`, "", "json", `{"type": "object"}`},
		{backend.JSONSchema, "{\n\"type\":\n\"object\"}", `{"`, "grammar", "start: /\\x{7b}\\x{22}/ %json {\"type\":\"object\"}\n"},
		{backend.JSONSchema, `{`, "x", "", ""},
		{backend.JSONSchema, `{`, "", "", ""},
		{backend.Lark, "start: a\na: \"x\"", "", "grammar", "start: a\na: \"x\""},
		{backend.Lark, "start: a\na: \"start\"", "\x00", "grammar", "unfray_start: a\na: \"start\"\nstart: /\\x{0}/ unfray_start\n"},
		{backend.Lark, "a: \"x\"", "x", "", ""},
		{backend.Lark, "start: /a/\n%ignore /x/", "x", "", ""},
		{backend.GBNF, "root ::= [a]", "x", "", ""},
		{backend.GBNF, "root ::= [a]", "", "", ""},
	} {
		got, err := composed(&backend.Grammar{Kind: tt.kind, Source: tt.source}, []byte(tt.literal))
		if tt.field == "" {
			var unsupported *backend.UnsupportedError
			if !errors.As(err, &unsupported) || unsupported.Param != "grammar" {
				t.Errorf("%s %q after %q: %v, %v; want it refused", tt.kind, tt.source, tt.literal, got, err)
			}
			continue
		}
		if err != nil || len(got) != 1 || fmt.Sprintf("%s", got[tt.field]) != tt.want {
			t.Errorf("%s %q after %q: %s, %v; want %s %q", tt.kind, tt.source, tt.literal, got, err, tt.field, tt.want)
		}
	}
}

func TestUnanchored(t *testing.T) {
	for source, want := range map[string]string{
		"": "", "a": "a", "^": "", "$": "", "^$": "", "^a$": "a", "^a": "a", "a$": "a", `a\$`: `a\$`, `\^a`: `\^a`,
		"[$^]": "[$^]", "[^a]": "[^a]", "[]^]$": "[]^]", "[^]$]": "[^]$]", "(a|b)$": "(a|b)", `\\$`: `\\`,
		"^a|b$": "-", "a|b": "a|b", "(^a)": "-", "a$b": "-", "(a$)": "-", "^^": "-",
	} {
		if got, ok := unanchored(source); ok != (want != "-") || ok && got != want {
			t.Errorf("%q: %q, %v; want %q", source, got, ok, want)
		}
	}
}

// A literal is what the escapes say: read back by Go's engine, which knows the
// same ones.
func TestLiteralsReadBack(t *testing.T) {
	text := []byte("aZ09 _é\n\r\t\"\\/.^$|?*+()[]{}-\x01\x7f\u2028日🙂'`~#&,:;<=>@!%")
	for _, pattern := range []string{regexLiteral(text), larkLiteral(text)} {
		re, err := regexp.Compile(`\A(?:` + strings.ReplaceAll(pattern, `\/`, "/") + `)\z`)
		if err != nil {
			t.Fatal(err)
		}
		if !re.Match(text) || re.MatchString(string(text)+"x") {
			t.Errorf("%s does not stand for %q", pattern, text)
		}
	}
}

func FuzzRenameStart(f *testing.F) {
	for _, s := range []string{
		"start: a", "start[temperature=0.7]: /start/ \"start\" // start\n", "%llguidance {}\nstart: %json {\"start\": 1}", "%ignore /a/",
		"restart: start\nstart :\"x\" | 'start'", "unfray_start: start\nstart: a", "start: /a\\/start/ start_x x-start # start", "\"", "/", "%lark { start: a }", "start",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		renamed, name, err := renameStart(source)
		if err != nil {
			return
		}
		if strings.Contains(source, name) {
			t.Fatalf("the new name %q is in the source", name)
		}
		if back := strings.ReplaceAll(renamed, name, "start"); back != source {
			t.Fatalf("%q became %q", source, renamed)
		}
		if _, err := composed(&backend.Grammar{Kind: backend.Lark, Source: source}, []byte("x")); err != nil {
			t.Fatal(err)
		}
		unanchored(source)
	})
}
