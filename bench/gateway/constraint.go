//go:build unix

package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/unfray/unfray/vocab"
)

// A constraint is what a request demands of the first tokens of its answer. The mock keeps to those that name tokens;
// what others demand it says anyway, as they give back what the prompt lacks.
type constraint struct {
	path []vocab.ID // these, one after the other
	set  []vocab.ID // one of these
}

// read reads a field of llama.cpp's or vLLM's that constrains tokens.
func (c *constraint) read(field string, raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	switch field {
	case "allowed_token_ids":
		return json.Unmarshal(raw, &c.set)
	case "logit_bias":
		// llama.cpp's form is a list of pairs; no bias below this one is as good as a demand.
		const demand = 100
		var pairs [][2]json.RawMessage
		if json.Unmarshal(raw, &pairs) != nil {
			return nil // OpenAI's form
		}
		for _, p := range pairs {
			id, err := strconv.Atoi(string(p[0]))
			bias, noNumber := strconv.ParseFloat(string(p[1]), 64)
			if err == nil && noNumber == nil && bias >= demand {
				c.set = append(c.set, vocab.ID(id))
			}
		}
		return nil
	case "structured_outputs":
		var out struct {
			Grammar string `json:"grammar"`
		}
		err := json.Unmarshal(raw, &out)
		c.grammar(out.Grammar)
		return err
	}
	var source string
	err := json.Unmarshal(raw, &source)
	c.grammar(source)
	return err
}

// grammar reads what a GBNF or Lark grammar begins with. Tokens in a row are a path; where there are choices, all tokens
// of the rule are taken for a set. Of a Lark grammar whose first rule leads to another, that other is read.
func (c *constraint) grammar(source string) {
	rule, rest, _ := strings.Cut(source, "\n")
	sequence := !strings.ContainsAny(rule, "|(")
	if strings.HasPrefix(rule, "start: n") {
		rule, _, _ = strings.Cut(rest, "\n")
		sequence = false
	}
	for {
		open := strings.Index(rule, "<[")
		if open < 0 {
			return
		}
		list, rest, ok := strings.Cut(rule[open+2:], "]>")
		if !ok {
			return
		}
		rule = rest
		ids := idRanges(list)
		if sequence && len(ids) == 1 {
			c.path = append(c.path, ids...)
		} else {
			c.set = append(c.set, ids...)
		}
	}
}

// maxRange bounds the tokens that a list of ranges may stand for.
const maxRange = 1 << 20

// idRanges reads IDs and ranges of them, as in "5,7-9". What is no number is left out.
func idRanges(list string) (ids []vocab.ID) {
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.ParseUint(low, 10, 31)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.ParseUint(high, 10, 31); err != nil {
				continue
			}
		}
		for id := from; id <= to && len(ids) < maxRange; id++ {
			ids = append(ids, vocab.ID(id))
		}
	}
	return ids
}
