package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/unfray/unfray/jsonrepair"
)

// repaired runs unfray repair on a text.
func repaired(t *testing.T, in io.Reader, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	status = run(t.Context(), append([]string{"repair"}, args...), in, &out, &errOut)
	return status, out.String(), errOut.String()
}

// brokenTexts are documents of every outcome with one value each.
var brokenTexts = []string{
	`{"a":1}`, ` [1.10, "\u00e9é"] `, `{'a': True, b: .5 // x` + "\n}", `{"a":[1,2`, `{"a":"x\ud83d`, "{\"a\":\"caf\xc3", `{"n":1,234}`,
	`{"a":"say "hi", ok"}`, "```json\n{\"a\": 'b'}\n```\nDone.", "no", "", `{"a":NaN}`, `{"p":"C:\Users\x"}`, "[\"\xff\"]", `[[[[`,
}

// A stream prints what the whole document gives, however it comes.
func TestRepairStreamIsWhole(t *testing.T) {
	for _, text := range brokenTexts {
		wantStatus, want, _ := repaired(t, strings.NewReader(text))
		for name, in := range map[string]io.Reader{
			"at once":       strings.NewReader(text),
			"byte by byte":  iotest.OneByteReader(strings.NewReader(text)),
			"end with data": iotest.DataErrReader(strings.NewReader(text)),
		} {
			if status, got, _ := repaired(t, in, "--stream"); status != wantStatus || got != want {
				t.Errorf("%q %s: %d %q, want %d %q", text, name, status, got, wantStatus, want)
			}
		}
	}
}

func TestRepairFlags(t *testing.T) {
	for _, tc := range []struct {
		text, args, want string
	}{
		{`[1,23`, "", `[1]`},
		{`[1,23`, "--ended", `[1,23]`},
		{`[1,23`, "--stream --ended", `[1,23]`},
		{`["\frac"]`, "--latex", `["\\frac"]`},
		{`["C:\new"]`, "--paths --stream", `["C:\\new"]`},
	} {
		if status, got, stderr := repaired(t, strings.NewReader(tc.text), strings.Fields(tc.args)...); status != 0 || got != tc.want {
			t.Errorf("%s %s: %d %s %s", tc.text, tc.args, status, got, stderr)
		}
	}
}

// What is final is printed while the input still comes.
func TestRepairStreamIsLive(t *testing.T) {
	in, typed := io.Pipe()
	shown, out := io.Pipe()
	late := time.AfterFunc(10*time.Second, func() { shown.CloseWithError(errors.New("it does not come")) })
	defer late.Stop()
	status := make(chan int)
	go func() {
		defer out.Close()
		status <- run(t.Context(), []string{"repair", "--stream"}, in, out, io.Discard)
	}()
	for _, step := range []struct{ in, out string }{{`{'a': [1, 2,`, `{"a": [1`}, {` 3], b: "xy`, `, 2, 3], "b": "x`}, {`z `, `yz`}} {
		if _, err := io.WriteString(typed, step.in); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(step.out))
		if _, err := io.ReadFull(shown, got); err != nil || string(got) != step.out {
			t.Fatalf("behind %q: %q, %v", step.in, got, err)
		}
	}
	typed.Close()
	go func() {
		if rest, _ := io.ReadAll(shown); string(rest) != ` "}` {
			t.Errorf("at the end: %q", rest)
		}
	}()
	if s := <-status; s != 0 {
		t.Error("status", s)
	}
}

// A stream that is interrupted closes its document.
func TestRepairInterrupted(t *testing.T) {
	in, typed := io.Pipe()
	defer typed.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var out, errOut bytes.Buffer
	go func() {
		io.WriteString(typed, `{"a": ["x`)
		io.WriteString(typed, `y`) // the first has been read
		time.Sleep(10 * time.Millisecond)
		cancel()
	}()
	if status := run(ctx, []string{"repair", "--stream"}, in, &out, &errOut); status != exitFailed {
		t.Error("status", status)
	}
	if out.String() != `{"a": ["xy"]}` || !strings.HasSuffix(errOut.String(), "unfray: interrupted\n") {
		t.Errorf("%s\n%s", &out, &errOut)
	}
	for _, args := range [][]string{{"repair"}, {"repair", "--jsonl"}} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		errOut.Reset()
		if status := run(ctx, args, in, io.Discard, &errOut); status != exitFailed || errOut.String() != "unfray: interrupted\n" {
			t.Errorf("%v: %d %s", args, status, &errOut)
		}
	}
}

// A number at the end of an input that could not be read to its end is not whole,
// whatever --ended says.
func TestRepairStreamBreaksOff(t *testing.T) {
	in := io.MultiReader(strings.NewReader(`[1, 2`), iotest.ErrReader(errors.New("gone")))
	if status, out, stderr := repaired(t, in, "--stream", "--ended"); status != exitFailed || out != "[1]" || !strings.HasSuffix(stderr, "unfray: reading: gone\n") {
		t.Errorf("%d %s %s", status, out, stderr)
	}
}

// closedAfter is a pipe whose reader goes away.
type closedAfter struct{ n int }

func (c *closedAfter) Write(b []byte) (int, error) {
	if c.n -= len(b); c.n < 0 {
		return 0, fmt.Errorf("write: %w", syscall.EPIPE)
	}
	return len(b), nil
}

// A reader that goes away ends the command quietly, also within endless input.
func TestRepairClosedOutput(t *testing.T) {
	text := "[" + strings.Repeat(`{'a':1},`, 50_000) + "1]"
	line := `{"text":` + fmt.Sprintf("%q", text[:1000]) + "}\n"
	for _, tc := range []struct {
		arg string
		in  io.Reader
	}{
		{"--stream", io.MultiReader(strings.NewReader("["), endless("'a',"))},
		{"--jsonl", endless(line)},
		{"--json", strings.NewReader(text)},
		{"--diff", strings.NewReader(text)},
		{"-v", strings.NewReader(text)},
	} {
		var errOut bytes.Buffer
		if status := run(t.Context(), []string{"repair", tc.arg}, tc.in, &closedAfter{10_000}, &errOut); status != 0 || errOut.Len() > 0 {
			t.Errorf("%s: %d %s", tc.arg, status, &errOut)
		}
	}
}

// endless repeats a text.
type endless string

func (e endless) Read(b []byte) (int, error) {
	n := 0
	for len(b)-n >= len(e) {
		n += copy(b[n:], e)
	}
	return n, nil
}

func TestRepairReadError(t *testing.T) {
	bad := errors.New("the disk is on fire")
	for _, args := range [][]string{nil, {"--stream"}, {"--jsonl"}, {"--diff"}} {
		in := io.MultiReader(strings.NewReader(`{"text":"{"}`+"\n"), iotest.ErrReader(bad))
		if status, _, stderr := repaired(t, in, args...); status != exitFailed || !strings.Contains(stderr, bad.Error()) {
			t.Errorf("%v: %d %s", args, status, stderr)
		}
	}
}

// Reports come in the order of the lines, whatever each takes.
func TestRepairBulkOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var in bytes.Buffer
	const n = 5000
	for i := range n {
		text := "[" + strings.Repeat("'a' ", rng.IntN(40)) + "1]"
		if rng.IntN(100) == 0 {
			text = "[" + strings.Repeat("'a' ", 2_000) + "1]"
		}
		fmt.Fprintf(&in, "{\"id\":%d,\"text\":%q}\n%s", i, text, []string{"", "\n", " \r\n"}[rng.IntN(3)])
	}
	status, out, stderr := repaired(t, &in, "--jsonl")
	if status != 0 || !strings.HasPrefix(stderr, "unfray: 5000 documents: ") {
		t.Fatal(status, stderr)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != n {
		t.Fatal(len(lines), "lines")
	}
	for i, line := range lines {
		var r struct {
			ID      int
			Outcome string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.ID != i || r.Outcome == "failed" {
			t.Fatalf("line %d: %+v, %v", i, r, err)
		}
	}
}

// A line is answered while the next is still to come.
func TestRepairBulkIsLive(t *testing.T) {
	in, typed := io.Pipe()
	shown, out := io.Pipe()
	late := time.AfterFunc(10*time.Second, func() { shown.CloseWithError(errors.New("it does not come")) })
	defer late.Stop()
	go func() {
		run(t.Context(), []string{"repair", "--jsonl"}, in, out, io.Discard)
		out.Close()
	}()
	answers := bufio.NewReader(shown)
	for i := range 3 {
		fmt.Fprintf(typed, "{\"id\":%d,\"text\":\"1\"}\n{\"id\"", i)
		want := fmt.Sprintf(`{"id":%d,"outcome":"valid","text":"1","value":1,"edits":[]}`+"\n", i)
		if got, err := answers.ReadString('\n'); got != want {
			t.Fatal(got, err)
		}
		io.WriteString(typed, ":0,\"text\":\"2\"}\n")
		if got, err := answers.ReadString('\n'); !strings.HasPrefix(got, `{"id":0,`) {
			t.Fatal(got, err)
		}
	}
	typed.Close()
	io.Copy(io.Discard, shown)
}

// counter counts what has been read of an endless input.
type counter struct {
	r io.Reader
	n atomic.Int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// Nothing is read far ahead of a reader that does not take the output.
func TestRepairBulkWindow(t *testing.T) {
	in := &counter{r: endless(`{"text":"` + strings.Repeat("x", 8000) + `"}` + "\n")}
	shown, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		run(ctx, []string{"repair", "--jsonl"}, in, out, io.Discard)
		close(done)
	}()
	io.ReadFull(shown, make([]byte, 1000))
	before := int64(-1)
	for n := in.n.Load(); n != before; n = in.n.Load() {
		before = n
		time.Sleep(100 * time.Millisecond)
	}
	if before > bytesAtWork+(4<<20) {
		t.Errorf("%d bytes were read ahead", before)
	}
	cancel()
	shown.Close()
	<-done
}

func FuzzRepairLine(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"text":"{'a'"}`, `{"text":1}`, `{"bytes":"e/8="}`, `[]`, "{", `{"text":"\ud83d"}`, "\xff", `{"id":{"a":[1.10]},"text":"[1,2","finish_reason":"stop"}`,
	} {
		f.Add([]byte(s))
	}
	r := repairFlags{o: jsonrepair.Options{MaxBytes: 1 << 16}}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsAny(line, "\n") {
			return
		}
		k := bulk{line: r.repairOne}
		done := k.block(&block{first: 1, lines: [][]byte{line}})
		if done.err != nil {
			t.Fatal(done.err)
		}
		want := 1
		if len(bytes.TrimSpace(line)) == 0 {
			want = 0
		}
		if bytes.Count(done.out, []byte("\n")) != want || want == 1 && !json.Valid(done.out) {
			t.Fatalf("%q", done.out)
		}
	})
}

// lines are read as bufio.Scanner reads them, up to the limit.
func TestLineReader(t *testing.T) {
	var text strings.Builder
	var want []string
	for i := range 3000 {
		line := strings.Repeat("x", i*i%70_000)
		want = append(want, line[:min(len(line), 50_001)])
		text.WriteString(line)
		if i < 2999 {
			text.WriteString([]string{"\n", "\r\n"}[i%2])
		}
	}
	l := lineReader{r: bufio.NewReaderSize(strings.NewReader(text.String()), 4096), most: 50_000, line: 1}
	var got []string
	total := 0
	for !l.ended {
		b := l.block()
		if b.err != nil && b.err != io.EOF || b.first != len(got)+1 {
			t.Fatal(b.first, b.err)
		}
		total += b.bytes
		for _, line := range b.lines {
			got = append(got, string(line))
		}
	}
	if total != text.Len() || len(got) != len(want) {
		t.Fatal(total, len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("line %d has %d bytes, want %d", i, len(got[i]), len(want[i]))
		}
	}
}
