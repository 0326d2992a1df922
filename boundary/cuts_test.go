package boundary_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/unfray/unfray/boundary"
	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/tokenizer/tokenizertest"
)

var cutsFlag = flag.Int("cuts", 0, "random cuts for each vocabulary; 0 takes a sample")

// vocabularies are the files of real vocabularies, one of each family.
var vocabularies = []string{
	"o200k_base.tiktoken", "cl100k_base.tiktoken", "p50k_base.tiktoken", "r50k_base.tiktoken",
	"llama3", "qwen2_5", "qwen3", "deepseek_v3", "gptoss", "gpt4o", "gpt2", "claude", "mistral", "mistral_nemo",
	"gemma2/tokenizer.model", "gemma3", "models/unigram.model", "models/bpe.model",
}

// opened holds the vocabularies by name.
var opened sync.Map

// openVocabulary opens one of the vocabularies, or skips the test.
func openVocabulary(t testing.TB, name string) *tokenizer.Tokenizer {
	t.Helper()
	if tok, ok := opened.Load(name); ok {
		return tok.(*tokenizer.Tokenizer)
	}
	path := tokenizertest.Path(t, name)
	if strings.HasPrefix(name, "models/") { // trained for the tests
		path = filepath.Join(tokenizertest.Reference(t), name)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip(err)
	}
	if filepath.Ext(path) == "" {
		path = filepath.Join(path, "tokenizer.json")
	}
	tok, err := tokenizer.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	opened.Store(name, tok)
	return tok
}

// TestVocabularies cuts real text at random places, for each real vocabulary.
// Each prompt is followed by what really came next and by continuations of other
// kinds.
func TestVocabularies(t *testing.T) {
	cuts := *cutsFlag
	if cuts == 0 {
		cuts = 3000
		if testing.Short() || raceEnabled {
			cuts = 300
		}
	}
	names := vocabularies
	if raceEnabled {
		names = []string{"r50k_base.tiktoken"}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			tok := openVocabulary(t, name)
			for _, corpus := range []string{"go", "multi", "fuzz"} {
				cutCorpus(t, tok, corpus, cuts/3)
			}
		})
	}
}

func cutCorpus(t *testing.T, tok *tokenizer.Tokenizer, corpus string, cuts int) {
	text := tokenizertest.Corpus(t, corpus)
	const workers, longest = 2, 160
	var wg sync.WaitGroup
	var unstable [6]atomic.Int64
	var covers atomic.Int64
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(17, uint64(w)))
			for range cuts / workers {
				cut := r.IntN(len(text) + 1)
				prompt := text[max(0, cut-r.IntN(longest)):cut]
				rep := boundary.Analyze(tok, prompt)
				unstable[min(len(rep.IDs)-rep.Stable, len(unstable)-1)].Add(1)
				for range 4 {
					s := continuation(r, tok.Vocab(), text, cut, r.IntN(20))
					compared, err := check(tok, rep, prompt, s)
					if err != nil {
						t.Error(err)
						return
					}
					if compared {
						covers.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	line := fmt.Sprintf("%s: %d cuts, %d true covers found; tokens unstable:", corpus, cuts, covers.Load())
	for n := range unstable {
		line += fmt.Sprintf(" %d: %.1f %%", n, 100*float64(unstable[n].Load())/float64(cuts))
	}
	t.Log(line)
}

// check reports how the tokens of text+s contradict the report, if they do: in a
// stable token, or by a cover that is not among those of the report. compared
// says that there was a cover to look for: what follows may also make a
// normalizer rewrite the end of the text.
func check(tok *tokenizer.Tokenizer, r *boundary.Report, text, s []byte) (compared bool, err error) {
	ids := tok.Encode(nil, slices.Concat(text, s))
	if len(ids) < r.Stable || !slices.Equal(ids[:r.Stable], r.IDs[:r.Stable]) {
		return false, fmt.Errorf("text %q, continuation %q: tokens %v do not begin with the %d stable ones of %v (%s)", text, s, ids, r.Stable, r.IDs, r.Reason)
	}
	if len(r.Branches) == 0 || len(r.Pending) == 0 {
		return false, nil
	}
	var spelled []byte
	for n, id := range ids[r.Stable:] {
		if spelled = append(spelled, tok.Vocab().Bytes(id)...); len(spelled) < len(r.Pending) {
			continue
		}
		if string(spelled[:len(r.Pending)]) != string(r.Pending) {
			break
		}
		if cover := ids[r.Stable : r.Stable+n+1]; !r.IsCover(cover) {
			return true, fmt.Errorf("text %q, continuation %q: cover %v is not one of the report's, stable %d, pending %q, branches %s", text, s, cover, r.Stable, r.Pending, showBranches(r))
		}
		return true, nil
	}
	return false, nil
}

func showBranches(r *boundary.Report) (s string) {
	for _, b := range r.Branches {
		s += fmt.Sprintf(" %v+%q", b.Path, b.Rest)
	}
	return s
}
