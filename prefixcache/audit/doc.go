// Package audit says where prompts that a prefix cache was to share first
// differ, why, what that costs, and what would help.
//
//   - Each prompt is compared with one earlier prompt: the previous turn of its
//     conversation, else the one with which it shares the longest beginning.
//     Finding that one takes a sort, not all pairs.
//   - A cause is told by the bytes and tokens around the divergence, never by
//     names. What fits no cause is [Content]: other text.
//   - Lost are only tokens that the cache held and whose text stands in the new
//     prompt too. Text that is really new is never counted.
//   - A suggestion is listed only if the audit, run again with the change made,
//     computes fewer tokens, and not more where only full blocks are kept. Its
//     figures are those of that run.
//
// The cache is an ideal one: it keeps every prompt, and the output where there is
// one, without a limit. What a real one has thrown away is the matter of package
// replay.
package audit
