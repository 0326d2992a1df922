package trace

import (
	"slices"
	"strings"
	"time"
)

// A format reads records of one kind.
type format struct {
	name string
	note string
	// read reads the scanner's record into req. False: there is none, or there are
	// several, in parts.
	read func(*Reader) bool
	// part reads one of them.
	part func(*Reader, mark)
	// reorder is how much later than a request began its record may come.
	reorder time.Duration
}

// parts are the requests of a record that has several. They are read one by one,
// so that many small ones take little memory.
type parts struct {
	marks []mark
	next  int

	// Of a conversation.
	buf         []byte // its messages
	closed      int    // byte of buf where an array's end stands for a comma; 0: nowhere
	name, model string

	// Of several prompts.
	common Request // what they share
	timeAt int     // as the reader's
}

// A mark says where in the record, or in buf, a part is.
type mark struct{ a, b, c int }

func (p *parts) left() bool { return p.next < len(p.marks) }

// part reads the next part into req.
func (r *Reader) part() {
	m := r.parts.marks[r.parts.next]
	r.parts.next++
	r.f.part(r, m)
}

// Formats names the formats, in the order in which they are tried.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

func formatList() string { return strings.Join(Formats(), ", ") }

func formatNamed(name string) *format {
	all := formats()
	if i := slices.IndexFunc(all, func(f *format) bool { return f.name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

func formats() []*format {
	return []*format{
		{name: "mooncake", read: (*Reader).mooncake},
		{name: "sharegpt", read: (*Reader).shareGPT, part: (*Reader).turn},
		{name: "agent", read: (*Reader).agent, part: (*Reader).turn},
		{name: "unfray", read: (*Reader).gatewayLog, part: (*Reader).promptOf, reorder: 10 * time.Minute},
		{name: "otel", read: (*Reader).otel, part: (*Reader).span, reorder: 10 * time.Minute},
		{name: "keystrokes", read: (*Reader).keystroke},
		{name: "vllm-bench", read: (*Reader).bench},
		{name: "openai", read: (*Reader).openAI, part: (*Reader).promptOf},
		{name: "csv", read: (*Reader).csvLine,
			note: "the trace tells times and lengths only: without content, nothing of it can be found in a cache"},
	}
}

// detectFields are the names that tell formats apart.
var detectFields = []string{"hash_ids", "conversations", "history", "trajectory", "trajectory_format",
	"msg", "level", "time", "spans", "prefix", "next", "middle", "suffix",
	"prompt", "messages", "request", "body", "response", "inputs", "text", "input_ids", "prompt_token_ids",
	"output_tokens", "model", "timestamp", "input_length"}

// detect finds the format by the names of the record's fields.
func (r *Reader) detect() bool {
	s := &r.s
	if c := s.peek(); c != '{' && r.rec.layout == inLines {
		if r.readHeader(s.b) {
			r.choose("csv")
			return true
		}
		if r.plainLine(); s.err != nil || startOfLog(s.b) {
			return false
		}
	}
	has, text := map[string]bool{}, false // text: the prompt is one
	m := s.object(detectFields)
	for m.next(s) {
		name := detectFields[m.field]
		has[name] = true
		text = text || name == "prompt" && s.peek() == '"'
		s.skip()
	}
	s.end()
	if s.err != nil {
		return false
	}
	one := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return has[n] })
	}
	name := ""
	switch {
	case one("hash_ids", "input_length"):
		name = "mooncake"
	case one("conversations"):
		name = "sharegpt"
	case one("history", "trajectory", "trajectory_format"):
		name = "agent"
	case has["msg"] && has["level"] && has["time"]:
		name = "unfray"
	case one("spans"):
		name = "otel"
	case has["prefix"] && one("next", "middle", "suffix"):
		name = "keystrokes"
	case text && !one("model", "timestamp", "time", "messages", "response") && (has["output_tokens"] || m.count == 1):
		name = "vllm-bench"
	case one("prompt", "messages", "request", "body", "inputs", "text", "input_ids", "prompt_token_ids"):
		name = "openai"
	default:
		s.fail(0, Format, "no format has such a record: name the format, one of "+formatList())
		return false
	}
	r.choose(name)
	s.reset(s.b)
	return true
}

// choose sets the format.
func (r *Reader) choose(name string) {
	r.f = formatNamed(name)
	r.stats.Format, r.stats.Note = r.f.name, r.f.note
}
