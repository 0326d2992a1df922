package jsonrepair

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// suiteFile is JSONTestSuite as one gzipped line {"name","b64"} for each of its
// parsing files. It is third parties' data and not part of this repository.
const suiteFile = "jsontestsuite.jsonl.gz"

// A suiteCase is a file of the suite: y_ must be accepted, n_ refused, i_ is up
// to the implementation.
type suiteCase struct {
	Name string
	B64  []byte
}

// readSuite reads the suite from the folder that UNFRAY_TEST_DATA names, by
// default the one beside the repository.
func readSuite(t *testing.T) []suiteCase {
	t.Helper()
	folder := os.Getenv("UNFRAY_TEST_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(folder, suiteFile))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("JSONTestSuite is not here: %v; set UNFRAY_TEST_DATA to the folder with %s", err, suiteFile)
	} else if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cases []suiteCase
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c suiteCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return cases
}

// What the suite leaves to the implementation, by the reason that Check has.
var suiteChoices = []struct {
	valid bool
	why   string
	files string // without i_ and .json
}{
	{true, "a number of any size is a number (RFC 8259 §6): it is kept as text", `
		number_double_huge_neg_exp number_huge_exp number_neg_int_huge_exp number_pos_double_huge_exp number_real_neg_overflow
		number_real_pos_overflow number_real_underflow number_too_big_neg_int number_too_big_pos_int number_very_big_negative_int`},
	{true, "a lone surrogate is four hexadecimal digits to the grammar (§7, §8.2)", `
		object_key_lone_2nd_surrogate string_1st_surrogate_but_2nd_missing string_1st_valid_surrogate_2nd_invalid
		string_incomplete_surrogate_and_escape_valid string_incomplete_surrogate_pair string_incomplete_surrogates_escape_valid
		string_invalid_lonely_surrogate string_invalid_surrogate string_inverted_surrogates_U+1D11E string_lone_second_surrogate`},
	{true, "nesting has no limit (§9) unless one is given", `structure_500_nested_arrays`},
	{false, "a text must be UTF-8 (§8.1)", `
		string_UTF-8_invalid_sequence string_UTF8_surrogate_U+D800 string_invalid_utf-8 string_iso_latin_1 string_lone_utf8_continuation_byte
		string_not_in_unicode_range string_overlong_sequence_2_bytes string_overlong_sequence_6_bytes string_overlong_sequence_6_bytes_null
		string_truncated-utf-8 string_UTF-16LE_with_BOM string_utf16BE_no_BOM string_utf16LE_no_BOM`},
	{false, "a byte order mark is not white space (§8.1 allows to ignore one; the repair does)", `structure_UTF-8_BOM_empty_object`},
}

func TestCheckJSONTestSuite(t *testing.T) {
	choices := map[string]bool{}
	for _, c := range suiteChoices {
		for _, name := range strings.Fields(c.files) {
			choices["i_"+name+".json"] = c.valid
		}
	}
	count := map[byte]int{}
	for _, c := range readSuite(t) {
		want := c.Name[0] == 'y'
		if c.Name[0] == 'i' {
			var listed bool
			if want, listed = choices[c.Name]; !listed {
				t.Errorf("%s: suiteChoices does not say what it is: Check gives %v", c.Name, Check(c.B64, 0))
			}
			delete(choices, c.Name)
		}
		if err := Check(c.B64, 0); (err == nil) != want {
			t.Errorf("%s: %v, want valid: %t: %.80q", c.Name, err, want, c.B64)
		}
		count[c.Name[0]]++
	}
	for name := range choices {
		t.Errorf("the suite has no %s", name)
	}
	t.Logf("%d y_, %d n_, %d i_", count['y'], count['n'], count['i'])
}
