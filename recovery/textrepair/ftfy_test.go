package textrepair

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestScratch(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(os.Getenv("UNFRAY_TEST_FTFY"), "test_cases.json"))
	if err != nil {
		t.Skip(err)
	}
	var cases []struct {
		Label, Original, Fixed, Expect string
		Enc                            *string `json:"fixed-encoding"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	bad, badDouble := 0, 0
	for i, c := range cases {
		got := string(Repair([]byte(c.Original), Options{}).Text)
		ok := got == c.Fixed || c.Enc != nil && got == *c.Enc
		if !ok {
			bad++
			t.Logf("%d %s %s\n in   %q\n got  %q\n want %q", i, c.Expect, c.Label, c.Original, got, c.Fixed)
		}
		var twice []rune
		for _, b := range []byte(c.Original) {
			twice = append(twice, rune(b))
		}
		got2 := string(Repair([]byte(string(twice)), Options{}).Text)
		if got2 != got {
			badDouble++
			t.Logf("%d DOUBLE %q -> %q", i, string(twice), got2)
		}
	}
	t.Log(bad, badDouble, len(cases))
}
