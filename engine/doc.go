// Package engine runs a model in this process: llama.cpp as a [backend.Backend].
//
//   - Requests share one native context by continuous batching; each has its
//     own mask, sampler and random numbers. A Steer that panics or a client
//     that goes away ends its own request only.
//   - The tokens of ended requests stay in their cells until those are needed.
//     A prompt that begins like one seen before, or like one that is running,
//     starts where the two part.
//   - Canceling takes effect within one decode step, during a long prompt too.
//   - Everything a native assertion could fail at is checked in Go first,
//     because such an assertion ends the process.
//
// # Building
//
// Only builds with the tag llama link the engine ([Linked]); in others [Open]
// returns [ErrNotLinked] and everything else compiles and is tested. A linked
// program needs libffi.so.8 (Debian: libffi8; macOS and Windows ship it with
// the binding): where that is missing the binding's initialization panics
// before main runs, which nothing here can prevent.
//
// llama.cpp itself is loaded at run time from [Options.LibraryPath]. The
// binding fits llama.cpp v0.5.0. If the folder holds GPU backends, the best
// device is used unless [Options.Device] says otherwise.
//
// # How requests share the context
//
// The decoder has [Options.Parallel] sequences over one buffer of
// [Options.CacheTokens] cells. One goroutine owns it and repeats: take over new
// requests, drop those that were given up, move waiting ones into idle
// sequences, decode one batch, choose a token for each request whose logits are
// there. A batch has one token of each generating request; what is left of
// [Options.BatchTokens] goes to prompts in equal parts.
//
// A prompt that an earlier running one shares waits until that part has been
// evaluated and then copies it; copies share cells. When cells run out, idle
// sequences are emptied, longest idle first; then the latest requests go back
// to the queue and later go on from where they were, by evaluating their tokens
// again. The earliest can always go on, so all requests end.
//
// # What repeats exactly
//
// Given equal logits the same request gives the same tokens, whatever runs
// beside it. The logits themselves depend a little on how a batch is made up,
// since the native kernels round differently for other shapes and places in
// the cache. With SmolLM2-135M in Q4_1, log-probabilities of one request alone
// and beside 31 others differ by 0.02 in the mean and 0.2 at most; with
// near ties this changes greedy choices too. The same prompt sent twice in a
// row to an idle engine gave identical logits: it runs in the cells where it ran,
// and at least two tokens are always evaluated again, because a single one takes
// other kernels than several.
package engine
