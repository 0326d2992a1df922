package remote

import (
	"encoding/json"
	"testing"

	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/vocab"
)

func TestConformanceVLLMInspection(t *testing.T) {
	v := openVLLM(t, vllmOptions(t, "inspection"))
	text, _ := json.MarshalIndent(v.Inspection(), "", "  ")
	t.Logf("%s\n%+v\n%v", text, v.Info(), v.TokenizerError())
}

func TestConformanceVLLM(t *testing.T) {
	o := vllmOptions(t, "suite")
	encode := func(s string) []vocab.ID { return o.Tokenizer.Encode(nil, []byte(s)) }
	backendtest.Run(t, backendtest.Suite{
		Open:      func(t *testing.T) backend.Backend { return openVLLM(t, o) },
		Vocab:     o.Tokenizer.Vocab(),
		Prompts:   [][]vocab.ID{encode("The capital of France is"), encode("func main() {\n\tfmt.Println(")},
		Steps:     6,
		Tolerance: 1e-3,
	})
}
