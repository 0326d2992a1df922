package extract

import "github.com/unfray/unfray/jsonrepair"

// Answer returns the text without reasoning and markers, and the edits that lead
// there. White space behind what is dropped goes with it. Without any it is the text
// itself.
func Answer(text []byte, o Options) ([]byte, []jsonrepair.Edit) {
	var edits []jsonrepair.Edit
	var out []byte
	for _, s := range Segments(text, o) {
		if s.Kind == Prose || s.Kind == Fence {
			from := s.Start
			if len(edits) > 0 && s.Kind == Prose {
				last := &edits[len(edits)-1]
				if last.Offset+len(last.Before) == s.Start {
					for from < s.End && isSpace(text[from]) {
						from++
					}
					last.Before = string(text[last.Offset:from])
				}
			}
			out = append(out, text[from:s.End]...)
			continue
		}
		kind := jsonrepair.Reasoning
		if s.Kind == Marker {
			kind = KindMarker
		}
		edits = append(edits, jsonrepair.Edit{Kind: kind, Offset: s.Start, Before: string(text[s.Start:s.End])})
	}
	if edits == nil {
		return text, nil
	}
	return out, edits
}

// Only returns the edits that leave of text the candidate's Text alone: what is
// around it is dropped, by what it is.
func Only(text []byte, c Candidate, o Options) []jsonrepair.Edit {
	var edits []jsonrepair.Edit
	drop := func(kind jsonrepair.Kind, from, to int) {
		if from < to {
			edits = append(edits, jsonrepair.Edit{Kind: kind, Offset: from, Before: string(text[from:to])})
		}
	}
	segments := Segments(text, o)
	kindOf := map[Kind]jsonrepair.Kind{Prose: jsonrepair.Prose, Reasoning: jsonrepair.Reasoning, Fence: jsonrepair.Fence, Marker: KindMarker}
	for _, s := range segments {
		drop(kindOf[s.Kind], s.Start, min(s.End, c.Start))
	}
	if before := string(text[c.Start:c.End]); before != string(c.Text) {
		edits = append(edits, jsonrepair.Edit{Kind: jsonrepair.Fence, Offset: c.Start, Before: before, After: string(c.Text)})
	}
	for _, s := range segments {
		drop(kindOf[s.Kind], max(s.Start, c.End), s.End)
	}
	return edits
}
