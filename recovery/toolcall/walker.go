package toolcall

import (
	"bytes"
	"slices"
	"strings"

	"github.com/unfray/unfray/jsonrepair"
)

// walker reads strict JSON as it is committed and finds the calls in it.
type walker struct {
	m    *machine
	b    *block
	doc  *doc
	view jsonrepair.View
	text []byte // what has been committed, from base on
	base int

	c     *call
	at    string // path of the object that describes it
	from  int    // where that begins, in bytes of what was committed
	mode  argMode
	argAt string // path of the arguments
	next  int    // what of them has been copied
	inner *inner
	cut   []jsonrepair.Open // what was open where the text breaks off
	final bool              // the text has ended

	extra bool // it has members that belong to no description
	found int  // calls

	// Where in the text a form without a marker turned out to be no call.
	refused   bool
	refusedAt int
}

// refuse says that a trial is no call, as is seen at an offset of what was committed.
func (w *walker) refuse(at int) {
	if w.m.bare() && !w.refused {
		w.refused, w.refusedAt = true, w.doc.place(at)
	}
}

// argMode is what the arguments are.
type argMode uint8

const (
	argNone   argMode = iota
	argObject         // an object, whose bytes are copied
	argString         // a string that may hold an object
	argOther          // something else, which is skipped
)

const (
	maxNameText = 1024 // strings up to this length are read as a whole
	maxPath     = 128  // what stands at longer paths describes no call
)

// write takes what has been committed.
func (w *walker) write(p []byte) {
	if len(p) == 0 {
		return
	}
	w.text = append(w.text, p...)
	if _, err := w.view.Write(p); err != nil {
		return // of several documents in a region the first counts
	}
	w.events()
	end := w.base + len(w.text)
	if w.mode == argObject {
		w.copy(end)
	}
	w.text, w.base = w.text[:0], end
}

func (w *walker) events() {
	for ev := range w.view.Events() {
		if w.refused || ev.Document > 0 {
			continue
		}
		switch w.mode {
		case argObject:
			if ev.Kind == jsonrepair.ObjectEnd && string(ev.Path) == w.argAt {
				w.copy(ev.Offset + 1)
				w.endArguments()
			}
		case argString:
			w.string(ev)
		case argOther:
			if ev.Complete() && string(ev.Path) == w.argAt {
				w.endArguments()
			}
		default:
			w.event(ev)
		}
	}
}

// copy takes the committed bytes up to an offset for arguments.
func (w *walker) copy(to int) {
	if to > w.next {
		w.c.add(w.m, w.text[w.next-w.base:to-w.base])
		w.next = to
	}
}

func (w *walker) endArguments() {
	w.mode = argNone
	w.c.ended = !w.open(w.argAt) && (w.inner == nil || w.inner.ended)
	w.inner = nil
	if w.b.args && w.at == w.argAt {
		w.endCall(w.next)
	}
}

// open reports whether the value at a path had not ended where the text breaks off. A
// marker that ends the text ends objects and arrays too.
func (w *walker) open(path string) bool {
	if !w.final {
		return false
	}
	for _, o := range w.cut {
		if o.Path == path && !(w.doc.marked && w.onlyContainers()) {
			return true
		}
	}
	return false
}

func (w *walker) onlyContainers() bool {
	for _, o := range w.cut {
		if o.Kind != "object" && o.Kind != "array" {
			return false
		}
	}
	return true
}

// event reads what is not part of arguments.
func (w *walker) event(ev jsonrepair.Event) {
	if len(ev.Path) > maxPath {
		return
	}
	path := string(ev.Path)
	if w.b.args {
		if path == "" && w.c == nil {
			w.newCall("", ev.Offset)
			w.setName(w.b.name, w.b.nameAt, w.b.id, ev.Offset)
			w.begin(ev, path)
		}
		return
	}
	if ev.Kind == jsonrepair.ObjectBegin && w.slot(path) {
		if w.c != nil && w.c.Name != "" && strings.HasPrefix(path, w.at+"/") {
			return // inside a call that is known
		}
		w.newCall(path, ev.Offset)
		return
	}
	if w.c == nil {
		return
	}
	if path == w.at {
		if ev.Kind == jsonrepair.ObjectEnd {
			w.endCall(ev.Offset + 1)
		}
		return
	}
	rest, ok := strings.CutPrefix(path, w.at)
	if !ok || w.foreign(ev, rest) {
		return
	}
	switch rest {
	case "/name", "/tool_name", "/function_name", "/function", "/function/name", "/tool":
		if ev.Kind == jsonrepair.StringEnd && len(ev.Raw) > len(`""`) && w.c.Name == "" && !w.open(path) {
			w.setName(ev.Text(), -1, "", ev.Offset)
		}
	case "/id", "/tool_call_id", "/call_id":
		if ev.Complete() && w.c.ID == "" && !w.open(path) && ev.Kind != jsonrepair.LiteralEnd {
			w.c.ID = ev.Text()
		}
	case "/arguments", "/parameters", "/args", "/input", "/function/arguments", "/function/parameters":
		if !w.c.any {
			w.begin(ev, path)
		}
	default:
		key := strings.TrimPrefix(rest, "/")
		w.extra = w.extra || !strings.Contains(key, "/") && !slices.Contains(descriptionKeys, key)
	}
}

// descriptionKeys are those of calls and of the messages that hold them.
var descriptionKeys = []string{"name", "tool_name", "function_name", "function", "tool", "id", "tool_call_id", "call_id", "index", "type", "arguments", "parameters", "args", "input", "tool_calls", "function_call", "tool_call", "role", "content", "refusal", "annotations", "audio"}

// bare reports whether a form without a marker may turn out to be text.
func (m *machine) bare() bool { return m.trial.on && !m.trial.marked }

// foreign refuses a trial at what descriptions of calls do not have: so JSON that is an
// answer is not held back for long.
func (w *walker) foreign(ev jsonrepair.Event, rest string) bool {
	if !w.m.bare() {
		return false
	}
	key, inside := strings.CutPrefix(rest, "/function/")
	if !inside {
		key = strings.TrimPrefix(rest, "/")
	}
	key, _, nested := strings.Cut(key, "/")
	if nested || key == "" {
		return false
	}
	bad := !slices.Contains(descriptionKeys, key)
	switch {
	case key == "type" && ev.Kind == jsonrepair.StringEnd:
		t := ev.Text()
		bad = t != "function" && t != "function_call" && t != "tool_call" && t != "tool_use"
	case key == "role" && ev.Kind == jsonrepair.StringEnd:
		bad = ev.Text() != "assistant"
	case key == "content":
		bad = ev.Kind != jsonrepair.LiteralEnd && ev.Kind != jsonrepair.StringBegin && (ev.Kind != jsonrepair.StringEnd || len(ev.Raw) > len(`""`))
	}
	if bad {
		w.refuse(ev.Offset)
	}
	return bad
}

// slot reports whether the object at a path may describe a call.
func (w *walker) slot(path string) bool {
	if path == "" || path == "/function_call" || path == "/tool_call" {
		return true
	}
	path = strings.TrimPrefix(path, "/tool_calls")
	return len(path) > 1 && path[0] == '/' && strings.Trim(path[1:], "0123456789") == ""
}

// newCall begins a call whose description, or whose arguments, begin at an offset.
func (w *walker) newCall(path string, from int) {
	w.c = &call{Call: Call{Format: w.b.format, RepairAt: w.doc.start}}
	w.at, w.from, w.extra = path, from, false
	w.c.Start = w.doc.start + from
}

// setName makes the name known, with which the call is found.
// offset is where that is, in bytes of what was committed.
func (w *walker) setName(name string, at int, id string, offset int) {
	if w.found == 0 && w.b.docs == 1 {
		w.c.Start = w.b.start
	}
	w.found++
	w.c.ID += id
	w.m.nameCall(w.c, name, at)
	if n := len(w.m.calls); n > 0 && w.b.args {
		w.c.follow = w.m.calls[n-1].Start >= w.b.start
	}
	if w.m.trial.marked && w.m.trial.on {
		w.m.accept()
	}
	w.c.hidden = w.m.trial.on
	if !w.m.known(w.c.Name) {
		w.refuse(offset)
	}
	w.m.calls = append(w.m.calls, w.c)
	if w.c.any && !w.refused {
		w.m.believe()
	}
}

// begin begins the arguments.
func (w *walker) begin(ev jsonrepair.Event, path string) {
	c := w.c
	c.any, w.argAt = true, path
	if c.Name != "" && !w.refused {
		w.m.believe()
	}
	switch ev.Kind {
	case jsonrepair.ObjectBegin:
		w.mode, w.next = argObject, ev.Offset
	case jsonrepair.StringBegin:
		w.mode = argString
		w.inner = newInner(w.m, c)
	case jsonrepair.LiteralEnd:
		if string(ev.Raw) == "null" {
			c.args, c.ended = []byte("{}"), true
			w.finding(EmptyArguments, "null was taken for no arguments")
			break
		}
		c.Problem = problem(c.Problem, NoObject)
	default:
		if c.Problem = problem(c.Problem, NoObject); !ev.Complete() {
			w.mode = argOther
		}
	}
	if w.mode == argNone {
		w.endArguments()
	}
}

// string reads a string that may hold an object.
func (w *walker) string(ev jsonrepair.Event) {
	switch {
	case string(ev.Path) != w.argAt:
	case ev.Kind == jsonrepair.StringPart:
		w.inner.write([]byte(ev.Text()))
	case ev.Kind == jsonrepair.StringEnd:
		if !w.b.quoted && !strings.Contains(w.argAt, "/function/") {
			w.finding(DoubleEncoded, "the arguments were JSON in a string")
		}
		w.inner.close(w.open(w.argAt))
		w.next = ev.Offset + len(ev.Raw)
		w.endArguments()
	}
}

func (w *walker) finding(k jsonrepair.Kind, text string) {
	w.m.find(k, w.doc.start+w.from, 0, text)
}

// endCall ends the call whose description ends at an offset.
func (w *walker) endCall(to int) {
	c := w.c
	w.c = nil
	if c.Name == "" {
		return
	}
	open := w.open(w.at)
	if !c.any {
		if w.m.bare() && !open {
			w.refuse(to)
			return
		}
		c.any = true
		if w.extra {
			c.Problem = problem(c.Problem, Malformed)
			c.End = w.doc.start + to
			w.m.endCall(c, !open)
			return
		}
		c.args = []byte("{}")
		if c.ended = !open; c.ended {
			w.finding(EmptyArguments, "the call has no arguments")
		}
	}
	c.End = w.doc.start + to
	w.m.endCall(c, c.ended && !open)
}

// endCall says whether a call is complete.
func (m *machine) endCall(c *call, complete bool) {
	c.Complete = complete
	if !complete {
		c.Problem = problem(c.Problem, Truncated)
	}
}

// problem keeps the first of two problems.
func problem(a, b Problem) Problem {
	if a != "" {
		return a
	}
	return b
}

// nameCall gives a call its name, mended where the tools prove it. at is where it
// stands; -1: unknown.
func (m *machine) nameCall(c *call, name string, at int) {
	if at < 0 {
		at = c.Start
	}
	c.Name = name
	if len(m.tools) == 0 {
		return
	}
	if _, ok := m.tools[name]; ok {
		return
	}
	if plain := unescapeMarkdown(name); m.tools[plain] != nil {
		m.find(EscapedName, at, len(name), "Markdown escapes in the name "+name)
		c.Name = plain
		return
	}
	if i := strings.LastIndexAny(name, ".:/"); i >= 0 && m.tools[name[i+1:]] != nil {
		m.find(QualifiedName, at, len(name), "the name was written as "+name)
		c.Name = name[i+1:]
		return
	}
	if s := strings.TrimSpace(name); m.tools[s] != nil {
		c.Name = s
		return
	}
	for n := 2; n <= 4; n++ {
		if k := len(name) / n; k > 0 && strings.Repeat(name[:k], n) == name && m.tools[name[:k]] != nil {
			m.find(DoubledName, at, len(name), "the name was written several times: "+name)
			c.Name = name[:k]
			return
		}
	}
	c.Problem = UnknownName
}

// unescapeMarkdown drops backslashes before punctuation.
func unescapeMarkdown(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b bytes.Buffer
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("_-*.[]", s[i+1]) >= 0 {
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
