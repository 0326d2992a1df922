package extract

import "bytes"

// maxHead is how long the head of a message of gpt-oss may be.
const maxHead = 256

// head reads the head of a message of gpt-oss at i, from <|start|> or <|channel|>
// to <|message|>, or a token that ends a message:
//
//	<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>
//
// Analysis is reasoning. What is addressed to a tool is left as it is, with its
// head; other heads are markers.
func (e *engine) head(i int) bool {
	p := &e.prose
	if !e.has(i, "<|") || !p.plain() {
		return false
	}
	if p.framed {
		for _, s := range []string{"<|end|>", "<|return|>"} {
			if e.has(i, s) {
				e.mark(i, len(s))
				return true
			}
		}
	}
	start := e.has(i, "<|start|>")
	if e.starved || !start && (!e.has(i, "<|channel|>") || p.toTool) {
		return false
	}
	end := i + 2
	for !e.has(end, "<|message|>") {
		if _, ok := e.at(end); !ok || end > i+maxHead {
			return false
		}
		end++
	}
	if e.starved {
		return false
	}
	text := e.b[i:end]
	end += len("<|message|>")
	p.toTool = bytes.Contains(text, []byte("to="))
	if p.toTool || start && !bytes.HasPrefix(text, []byte("<|start|>assistant")) {
		return false
	}
	_, channel, _ := bytes.Cut(text, []byte("<|channel|>"))
	p.framed = true
	if !bytes.HasPrefix(channel, []byte("analysis")) {
		e.mark(i, end-i)
		return true
	}
	e.asProse(i)
	e.hold = false
	e.commit(Reasoning, Opening, end)
	e.openReasoning(e.marks.harmony)
	return true
}
