package textrepair

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestAgainstFtfy compares with the test cases of ftfy, whose folder UNFRAY_TEST_FTFY names. Those in testdata/ftfy.txt
// disagree, and one that does not is an error.
func TestAgainstFtfy(t *testing.T) {
	folder := os.Getenv("UNFRAY_TEST_FTFY")
	if folder == "" {
		t.Skip("set UNFRAY_TEST_FTFY; `go run ./internal/deps/fetch -no-engine -references testdata/reference -env` fetches ftfy's test cases and prints it")
	}
	data, err := os.ReadFile(filepath.Join(folder, "test_cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Original, Fixed string
		Encoding        *string `json:"fixed-encoding"` // fixed without what is a matter of style; nil: the same
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	disagree := disagreements(t)
	agreed := 0
	for i, c := range cases {
		got := Repair([]byte(c.Original), Options{}).Text
		straight := Repair([]byte(c.Original), Options{StraightQuotes: true}).Text
		agrees := string(got) == c.Fixed || c.Encoding != nil && string(got) == *c.Encoding || string(straight) == c.Fixed
		if reason := disagree[[2]string{strconv.Itoa(i), "text"}]; agrees == (reason != "") {
			t.Errorf("case %d: %q gave %q; ftfy's is %q; listed reason: %q", i, c.Original, got, c.Fixed, reason)
		}
		if agrees {
			agreed++
		}
		var twice []rune
		for _, b := range []byte(c.Original) {
			twice = append(twice, rune(b))
		}
		again := Repair([]byte(string(twice)), Options{}).Text
		if reason := disagree[[2]string{strconv.Itoa(i), "twice"}]; (string(again) == string(got)) == (reason != "") {
			t.Errorf("case %d damaged once more: %q gave %q, not %q; listed reason: %q", i, string(twice), again, got, reason)
		}
	}
	t.Logf("%d of %d agree", agreed, len(cases))
}

func disagreements(t *testing.T) map[[2]string]string {
	t.Helper()
	list, err := os.ReadFile("testdata/ftfy.txt")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[[2]string]string{}
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			t.Fatalf("testdata/ftfy.txt: %q has %d fields, want 3", line, len(fields))
		}
		reasons[[2]string{fields[0], fields[1]}] = fields[2]
	}
	return reasons
}
