// Continuation cuts a hundred greedy answers at random tokens and has the model go
// on: by token IDs, by its text healed at the end, and, through a llama.cpp server,
// from an assistant message that is cut back to a boundary. Joined answers are
// compared with those that were not cut.
//
//	go -C bench run -tags llama ./continuation -model MODEL.gguf -library DIR
//	go -C bench run ./continuation -model MODEL.gguf -server http://127.0.0.1:8081
//
// A text that parts from the uncut one behind the seam is not called wrong before
// the model has been asked, by token IDs, what it gives the two likeliest tokens
// where they part: if they are nearly equal, other rounding chose the other one.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

type settings struct {
	model, library, server string
	tokens                 int
	documents              int
	seed                   uint64
	instruct               bool
	kind, only             string
	attempts               int
	out                    string
}

func main() {
	var s settings
	flag.StringVar(&s.model, "model", "", "GGUF file; with -server its tokenizer is used")
	flag.StringVar(&s.library, "library", "", "folder of llama.cpp's libraries")
	flag.StringVar(&s.server, "server", "", "address of a llama.cpp server that runs the model, in place of the engine in this process")
	flag.IntVar(&s.tokens, "tokens", 200, "most tokens of an answer")
	flag.IntVar(&s.documents, "documents", 100, "how many answers")
	flag.Uint64Var(&s.seed, "seed", 8, "of the places of the cuts")
	flag.BoolVar(&s.instruct, "instruct", false, "with -server: also by a turn of the user that asks for the rest")
	flag.StringVar(&s.kind, "kind", "", "only answers of one kind: json, list, prose, code")
	flag.StringVar(&s.only, "only", "", "only the answers of these names, separated by commas")
	flag.IntVar(&s.attempts, "attempts", 1, "with -server: how often the model may be asked")
	flag.StringVar(&s.out, "out", os.DevNull, "file for a JSON line about each continuation")
	flag.Parse()
	if err := measure(context.Background(), &s); err != nil {
		fmt.Fprintln(os.Stderr, "continuation:", err)
		os.Exit(1)
	}
}

// uncut is a whole answer.
type uncut struct {
	document
	prompt []vocab.ID
	ids    []vocab.ID // those of the answer's text
	ends   []int      // bytes of the text at each token's end
	text   []byte
	ended  bool // by the model, not by the limit
	cut    int  // tokens that stay
}

func (u *uncut) part() []byte { return u.text[:u.ends[u.cut-1]] }

// outcome is one continuation.
type outcome struct {
	Document string `json:"document"`
	Method   string `json:"method"`
	Verdict  string `json:"verdict"` // equal, parted, wrong, failed
	Cut      int    `json:"cut"`     // bytes
	Behind   int    `json:"behind"`  // bytes from the seam to where it parts
	// Gap is between the log-probabilities of the two likeliest tokens there.
	Gap   float64 `json:"gap"`
	Notes string  `json:"notes,omitempty"`
	// Part is the text up to the cut, Want what came behind it, Rest what was joined.
	Part string `json:"part"`
	Want string `json:"want"`
	Rest string `json:"rest"`
}

// runner is what answers.
type runner interface {
	// answer gives a document's uncut answer.
	answer(ctx context.Context, d document) (*uncut, error)
	// methods are the ways to go on with one.
	methods() []method
	// gap asks for the two likeliest tokens after ids.
	gap(ctx context.Context, ids []vocab.ID) (float64, error)
	close()
}

// method continues the answer at its cut. It returns what comes behind the cut, or
// why there is nothing.
type method struct {
	name string
	run  func(ctx context.Context, u *uncut) (rest []byte, failed string, err error)
}

func measure(ctx context.Context, s *settings) error {
	t, err := tokenizer.OpenGGUF(s.model)
	if err != nil {
		return err
	}
	r, err := open(t, s)
	if err != nil {
		return err
	}
	defer r.close()
	file, err := os.OpenFile(s.out, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	log := json.NewEncoder(file)
	rng := rand.New(rand.NewPCG(s.seed, s.seed))
	var all []*uncut
	out := []outcome{}
	for _, d := range documents()[:s.documents] {
		at := rng.Float64()
		if s.kind != "" && s.kind != d.Kind || s.only != "" && !slices.Contains(strings.Split(s.only, ","), d.Name) {
			continue
		}
		u, err := r.answer(ctx, d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
		if len(u.ids) < 2 {
			return fmt.Errorf("%s: an answer of %d tokens cannot be cut", d.Name, len(u.ids))
		}
		u.cut = 1 + int(at*float64(len(u.ids)-1))
		all = append(all, u)
		for _, m := range r.methods() {
			o, err := try(ctx, r, m, u)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", d.Name, m.name, err)
			}
			out = append(out, o)
			if err := log.Encode(o); err != nil {
				return err
			}
		}
	}
	if e, ok := r.(*embedded); ok { // once more, with nothing cached
		for _, u := range all {
			o, err := try(ctx, r, method{"token IDs, cold", e.byIDs}, u)
			if err != nil {
				return fmt.Errorf("%s: %w", u.Name, err)
			}
			out = append(out, o)
			if err := log.Encode(o); err != nil {
				return err
			}
		}
	}
	report(all, out)
	return file.Close()
}

// nearTie is how far apart the two likeliest tokens may be for rounding to choose
// the other one: two kernels of one build were seen to differ by as much.
const nearTie = 0.35

func try(ctx context.Context, r runner, m method, u *uncut) (outcome, error) {
	o := outcome{Document: u.Name, Method: m.name, Cut: len(u.part())}
	rest, failed, err := m.run(ctx, u)
	if err != nil {
		return o, err
	}
	// A server's JSON has no bytes that are not UTF-8, which models do produce.
	want := bytes.ToValidUTF8(u.text[o.Cut:], []byte("\ufffd"))
	rest = bytes.ToValidUTF8(rest, []byte("\ufffd"))
	o.Part, o.Want, o.Rest = string(u.part()), string(want), string(rest)
	if failed != "" {
		o.Verdict, o.Notes = "failed", failed
		return o, nil
	}
	for o.Behind < len(want) && o.Behind < len(rest) && want[o.Behind] == rest[o.Behind] {
		o.Behind++
	}
	if o.Behind == len(want) && (!u.ended || len(rest) == len(want)) {
		o.Verdict = "equal"
		return o, nil
	}
	at := u.cut // the token that holds the first byte of difference
	for at < len(u.ids) && u.ends[at] <= o.Cut+o.Behind {
		at++
	}
	o.Gap, err = r.gap(ctx, append(append([]vocab.ID{}, u.prompt...), u.ids[:at]...))
	if err != nil {
		return o, err
	}
	o.Verdict = "wrong"
	if o.Gap <= nearTie {
		o.Verdict = "parted"
	}
	o.Notes = fmt.Sprintf("%q, not %q", head(rest[o.Behind:]), head(want[o.Behind:]))
	return o, nil
}

func head(b []byte) []byte { return b[:min(len(b), 24)] }

func report(all []*uncut, out []outcome) {
	ended, tokens := 0, 0
	for _, u := range all {
		tokens += len(u.ids)
		if u.ended {
			ended++
		}
	}
	fmt.Printf("%d answers, %d tokens, %d ended by themselves\n\n", len(all), tokens, ended)
	fmt.Println("| way | equal | parted at a near tie | parted elsewhere | reported as failed |\n|---|---:|---:|---:|---:|")
	var names []string
	counts := map[string]map[string]int{}
	for _, o := range out {
		if counts[o.Method] == nil {
			names, counts[o.Method] = append(names, o.Method), map[string]int{}
		}
		counts[o.Method][o.Verdict]++
	}
	for _, n := range names {
		c := counts[n]
		fmt.Printf("| %s | %d | %d | %d | %d |\n", n, c["equal"], c["parted"], c["wrong"], c["failed"])
	}
}

// conversation is the prompt of a question in the form of the model's template,
// as the server's own template has it.
func conversation(question string) []byte {
	return []byte("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n")
}
