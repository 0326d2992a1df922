package chattemplate

import (
	"fmt"
	"strings"
)

// TakesParts reports whether the template goes over the parts of a message's
// content. Others want the content as a string.
func (t *Template) TakesParts() bool { return t.takesParts }

// Fit returns the messages with contents that are arrays of parts in the form that
// the template takes: the texts of the parts as one string, with newlines between
// them, or parts of type "text". It is what vLLM does (0.32.0,
// renderers/chat_utils.py: _parse_chat_message_content). Contents that are
// strings stay. Images, sounds and videos are refused: how many tokens they are is
// known to the model's own processor alone. Errors are [*RefusedError].
func (t *Template) Fit(messages []*Object) ([]*Object, error) {
	var out []*Object // nil: as messages
	for i, m := range messages {
		parts, ok := m.values["content"].([]any)
		if !ok {
			continue
		}
		content, err := t.fit(m.Text("role"), parts)
		if err != nil {
			return nil, &RefusedError{fmt.Sprintf("messages[%d].%s", i, err)}
		}
		if out == nil {
			out = append(out, messages...)
		}
		out[i] = m.Clone()
		out[i].Set("content", content)
	}
	if out == nil {
		return messages, nil
	}
	return out, nil
}

func (t *Template) fit(role string, parts []any) (any, error) {
	list, texts := []any{}, []string{}
	allText := true
	for i, p := range parts {
		part, isText, err := fitPart(p)
		if err != nil {
			return nil, fmt.Errorf("content[%d] %w", i, err)
		}
		if part == nil {
			continue
		}
		list = append(list, part)
		text := part.Text("text")
		if !isText {
			allText, text = false, part.Text("name")
		}
		// Of a tool's results vLLM makes one string of the list of parts.
		if text != "" || t.takesParts && isText {
			texts = append(texts, text)
		}
	}
	if t.takesParts && !(role == "tool" && allText) {
		return list, nil
	}
	return strings.Join(texts, "\n"), nil
}

// textFields are where parts of these types have their text.
var textFields = map[string]string{
	"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal", "thinking": "thinking",
}

// partFields are the fields of parts that vLLM knows; it leaves the others in parts
// of text (0.32.0, renderers/chat_utils.py: _KNOWN_CONTENT_PART_FIELDS).
var partFields = map[string]bool{
	"audio_embeds": true, "audio_url": true, "closed": true, "data": true, "file": true, "image_embeds": true, "image_pil": true,
	"image_url": true, "input_audio": true, "name": true, "prompt_cache_breakpoint": true, "refusal": true, "text": true,
	"thinking": true, "type": true, "uuid": true, "video_embeds": true, "video_url": true,
}

// fitPart returns a part as templates take it; nil for one that is left out.
func fitPart(p any) (part *Object, isText bool, err error) {
	part = &Object{}
	if text, ok := p.(string); ok {
		part.Set("type", "text")
		part.Set("text", text)
		return part, true, nil
	}
	o, _ := p.(*Object)
	if o == nil {
		return nil, false, fmt.Errorf("is neither a string nor an object")
	}
	kind := o.Text("type")
	if kind == "tool_reference" {
		part.Set("type", kind)
		part.Set("name", o.Text("name"))
		return part, false, nil
	}
	field := textFields[kind]
	switch {
	case kind == "":
		return nil, false, fmt.Errorf("has no type")
	case field == "":
		return nil, false, fmt.Errorf("is of type %.40q: only text can be counted in tokens, what else a message holds is the model's own to count", kind)
	}
	text, ok := o.values[field].(string)
	if !ok && o.values[field] != nil {
		return nil, false, fmt.Errorf("has a %s that is no string", field)
	} else if !ok {
		return nil, false, nil
	}
	part.Set("type", "text")
	part.Set("text", text)
	for _, k := range o.keys {
		if !partFields[k] {
			part.Set(k, o.values[k])
		}
	}
	return part, true, nil
}
