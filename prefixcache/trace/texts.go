package trace

import "strings"

var benchFields = []string{"prompt", "output_tokens"}

// bench reads vLLM's custom data set (0.32, benchmarks/datasets, CustomDataset).
func (r *Reader) bench() bool {
	s, q := &r.s, &r.req
	m := s.object(benchFields)
	for m.next(s) {
		switch m.field {
		case 0:
			q.Text = s.string()
		case 1:
			q.OutputTokens = s.tokens()
		}
	}
	s.end()
	s.need(&m, 0)
	return s.err == nil
}

// Fields of cursor positions and of fill-in-the-middle tasks: the prompt is the
// text before the cursor, and the output what really follows.
var keystrokeFields = []string{"prefix", "next", "middle", "suffix", "id", "task_id", "timestamp"}

func (r *Reader) keystroke() bool {
	s, q := &r.s, &r.req
	m := s.object(keystrokeFields)
	for m.next(s) {
		switch m.field {
		case 0:
			q.Text = s.string()
		case 1, 2:
			q.Output = s.string()
		case 3:
			s.string()
		case 4, 5:
			q.ID = s.name()
		case 6:
			r.timeAt = m.at
			q.At = r.stamp(s)
		}
	}
	s.end()
	s.need(&m, 0)
	if i := strings.LastIndexByte(q.ID, '/'); m.has(1) && i > 0 {
		q.Conversation = q.ID[:i]
	}
	return s.err == nil
}
