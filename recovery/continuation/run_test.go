package continuation

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
)

// upstream answers from a list, and fails the test if it is asked more often.
type upstream struct {
	t        *testing.T
	answers  []any // Answer or error
	requests []Request
}

func (u *upstream) ask(_ context.Context, q Request) (Answer, error) {
	u.t.Helper()
	u.requests = append(u.requests, q)
	if len(u.answers) == 0 {
		u.t.Fatalf("asked once more: %+v", q)
	}
	a := u.answers[0]
	u.answers = u.answers[1:]
	if err, ok := a.(error); ok {
		return Answer{}, err
	}
	return a.(Answer), nil
}

var cutByLength = DetectOptions{FinishReason: "length"}

func TestRun(t *testing.T) {
	refuses := errors.New("400: prefill is not supported")
	stop := func(text string) Answer { return Answer{Text: []byte(text), FinishReason: "stop"} }
	for _, tt := range []struct {
		name     string
		text     string
		o        Options
		answers  []any
		want     string // the text
		complete bool
		reason   Reason
		trace    []string // mode, and proof or reason, of each attempt
	}{
		{
			"once", city, Options{Answer: cutByLength}, []any{stop(` "city": "San Francisco"}`)},
			`{"name": "Ann Miller", "city": "San Francisco"}`, true, "", []string{"prefill reproduced"},
		},
		{
			"twice", city, Options{Answer: cutByLength},
			[]any{Answer{Text: []byte(` "city": "San Francisco", "sta`), FinishReason: "length"}, stop(` "city": "San Francisco", "state": "CA"}`)},
			`{"name": "Ann Miller", "city": "San Francisco", "state": "CA"}`, true, "", []string{"prefill reproduced", "prefill reproduced"},
		},
		{
			"it says stop, and is open", city, Options{Answer: DetectOptions{FinishReason: "stop"}}, []any{stop(` "city": "San Francisco"}`)},
			`{"name": "Ann Miller", "city": "San Francisco"}`, true, "", []string{"prefill reproduced"},
		},
		{
			"the model makes a fault", city, Options{Answer: cutByLength}, []any{stop(` "city": "San Francisco", "note": "a rather long text that has nothing to do with the seam",}`)},
			`{"name": "Ann Miller", "city": "San Francisco", "note": "a rather long text that has nothing to do with the seam",}`, false, MalformedText, []string{"prefill reproduced"},
		},
		{"a whole text", "All is said.", Options{Answer: DetectOptions{FinishReason: "stop"}}, nil, "All is said.", true, "", nil},
		{"whole JSON at the limit", `{"a": 1}`, Options{Answer: cutByLength}, nil, `{"a": 1}`, true, "", nil},
		{"malformed", `{"action": listt_windows"}`, Options{Answer: cutByLength}, nil, `{"action": listt_windows"}`, false, MalformedText, nil},
		{"filtered", city, Options{Answer: DetectOptions{FinishReason: "content_filter"}}, nil, city, false, Filtered, nil},
		{"a tool call", city, Options{ToolCall: true, Answer: cutByLength}, nil, city, false, InToolCall, nil},

		// A short answer that is whole, of which the upstream says length.
		{
			"the model ends where the text does", "The capital of France is Paris.", Options{Answer: cutByLength}, []any{stop(" France is Paris.")},
			"The capital of France is Paris.", true, "", []string{"prefill nothing_new"},
		},
		{
			"it says the same again", "The capital of France is Paris.", Options{Modes: []Mode{Instruct}, Answer: cutByLength}, []any{stop("The capital of France is Paris.")},
			"The capital of France is Paris.", true, "", []string{"instruct nothing_new"},
		},
		{
			"exact, and nothing follows", "The capital of France is Paris.", Options{Modes: []Mode{Exact}, Answer: cutByLength}, []any{Answer{FinishReason: "stop", Exact: true}},
			"The capital of France is Paris.", true, "", []string{"exact nothing_new"},
		},
		{
			"nothing comes", "The capital of France is Paris.", Options{Answer: cutByLength}, []any{stop("")},
			"The capital of France is Paris.", false, NothingNew, []string{"prefill nothing_new"},
		},
		{
			"the same again, open", city, Options{Answer: cutByLength}, []any{stop(city)},
			city, false, NothingNew, []string{"prefill nothing_new"},
		},

		// Other ways are tried where one fails.
		{
			"no prefill", story, Options{Modes: []Mode{Prefill, Instruct}, Answer: cutByLength}, []any{refuses, stop(" the water began.")},
			story[:len(story)-len("be")] + "began.", true, "", []string{"prefill ask_failed", "instruct reproduced"},
		},
		{"no prefill, and nothing else", story, Options{Answer: cutByLength}, []any{refuses}, story, false, AskFailed, []string{"prefill ask_failed"}},
		{
			"prefill is taken for a new turn", story, Options{Modes: []Mode{Prefill, Instruct}, Answer: cutByLength},
			[]any{stop("In summary, it was old."), stop(" the water began.")},
			story[:len(story)-len("be")] + "began.", true, "", []string{"prefill mismatch", "instruct reproduced"},
		},
		{
			"exact was promised and not done", story, Options{Modes: []Mode{Exact, Prefill}, Answer: cutByLength},
			[]any{stop("gan to sing."), stop(" the water began to sing.")},
			story + "gan to sing.", true, "", []string{"exact no_overlap", "prefill reproduced"},
		},
		{
			"the same wrong answer", story, Options{Attempts: 5, Answer: cutByLength}, []any{stop("In summary, it was old."), stop("In summary, it was old.")},
			story, false, Mismatch, []string{"prefill mismatch", "prefill mismatch"},
		},
		{
			"a second try with more of the text", story, Options{Attempts: 2, Answer: cutByLength},
			[]any{stop(" the water was"), stop(" miller opened the gates, and the water began.")},
			story + "gan.", true, "", []string{"prefill mismatch", "prefill reproduced"},
		},
		{
			"wrong answers", story, Options{Attempts: 2, Answer: cutByLength}, []any{stop("In summary, it was old."), stop("To sum up, it was old.")},
			story, false, Mismatch, []string{"prefill mismatch", "prefill mismatch"},
		},
		{
			"never complete", steps, Options{Attempts: 2, Answer: cutByLength},
			[]any{Answer{Text: []byte(" Add the rice\n4. And so"), FinishReason: "length"}, Answer{Text: []byte("\n4. And so on"), FinishReason: "length"}},
			steps + "ce\n4. And so", false, Mismatch, []string{"prefill reproduced", "prefill mismatch"},
		},
		{
			"all attempts", "It was a bright cold day in Apr", Options{Attempts: 1, Answer: cutByLength},
			[]any{Answer{Text: []byte(" day in April, and the clo"), FinishReason: "length"}},
			"It was a bright cold day in April, and the clo", false, OutOfAttempts, []string{"prefill reproduced"},
		},
		{
			"all tokens", "It was a bright cold day in Apr", Options{MaxTokens: 10, Answer: cutByLength},
			[]any{Answer{Text: []byte(" day in April, and the clo"), FinishReason: "length", Tokens: 10}},
			"It was a bright cold day in April, and the clo", false, OutOfTokens, []string{"prefill reproduced"},
		},
	} {
		u := &upstream{t: t, answers: tt.answers}
		text := []byte(tt.text)
		r := Run(t.Context(), text, tt.o, u.ask)
		var trace []string
		joined := 0
		for i, a := range r.Attempts {
			trace = append(trace, string(a.Mode)+" "+string(a.Proof)+string(a.Reason))
			joined += a.Added
			if q := u.requests[i]; a.Kept != len(q.Keep) || a.Required != len(q.Require) || q.Attempt != i+1 || (q.Mode == Instruct) != (q.Instruction != "") {
				t.Errorf("%s: attempt %+v, request %+v", tt.name, a, q)
			}
		}
		reason := Reason("")
		if e := (*SeamError)(nil); errors.As(r.Err, &e) {
			reason = e.Reason
		}
		if string(r.Text) != tt.want || r.Complete != tt.complete || reason != tt.reason || !slices.Equal(trace, tt.trace) {
			t.Errorf("%s: %q, complete %v, %v, trace %q", tt.name, r.Text, r.Complete, r.Err, trace)
		}
		if r.Joined != len(r.Text)-len(tt.text) || joined != r.Joined || !bytes.HasPrefix(r.Text, text) || string(text) != tt.text {
			t.Errorf("%s: %d bytes joined to %q: %q", tt.name, r.Joined, text, r.Text)
		}
		if len(u.answers) > 0 {
			t.Errorf("%s: %d answers were not asked for", tt.name, len(u.answers))
		}
	}
}

func TestRunIsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := Run(ctx, []byte(story), Options{Answer: cutByLength, Modes: []Mode{Prefill, Instruct}}, func(context.Context, Request) (Answer, error) {
		cancel()
		return Answer{}, ctx.Err()
	})
	if !errors.Is(r.Err, context.Canceled) || len(r.Attempts) != 1 || string(r.Text) != story {
		t.Errorf("%v, %+v", r.Err, r)
	}
}

// TestRunCountsTokens gives each attempt what is left.
func TestRunCountsTokens(t *testing.T) {
	u := &upstream{t: t, answers: []any{
		Answer{Text: []byte(" day in April, and the clocks we"), FinishReason: "length", Tokens: 30},
		Answer{Text: []byte(" clocks were"), FinishReason: "length"},
		Answer{Text: []byte(" clocks were striking."), FinishReason: "stop"},
	}}
	r := Run(t.Context(), []byte("It was a bright cold day in Apr"), Options{MaxTokens: 100, Answer: cutByLength}, u.ask)
	var limits []int
	for _, q := range u.requests {
		limits = append(limits, q.MaxTokens)
	}
	if want := []int{100, 70, 67}; !slices.Equal(limits, want) || !r.Complete || r.Tokens != 39 {
		t.Errorf("limits %v, want %v; %+v", limits, want, r)
	}
}

func TestReserve(t *testing.T) {
	r := &Reserve{Share: 0.3}
	open := Detect([]byte(city), cutByLength)
	whole := Detect([]byte(`{"a": 1}`), cutByLength)
	closed := Detect([]byte("All is said."), cutByLength)
	for _, tt := range []struct {
		limit, first int
		t            Truncation
		rest         int
	}{{100, 70, open, 30}, {100, 70, whole, 0}, {100, 70, closed, 0}, {2, 1, open, 1}, {1, 1, open, 0}, {0, 0, open, 0}} {
		if got := r.First(tt.limit); got != tt.first {
			t.Errorf("%d: first %d, want %d", tt.limit, got, tt.first)
		}
		if got := r.Rest(tt.limit, tt.t); got != tt.rest {
			t.Errorf("%d: rest %d, want %d", tt.limit, got, tt.rest)
		}
	}
	r.Spend(12)
	if got, want := r.Counts(), (ReserveCounts{Requests: 4, Cut: 3, Needed: 2, Kept: 91, Spent: 12}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	if off := (&Reserve{}); off.First(100) != 100 || off.Rest(100, open) != 0 || off.Counts() != (ReserveCounts{}) {
		t.Error("a reserve of nothing keeps something")
	}
	if all := (&Reserve{Share: 2}); all.First(100) != 1 {
		t.Error("nothing is left for the first request")
	}
}
