// Package extract finds what a model's answer is made of: prose, reasoning, code
// fences, and the JSON, YAML or XML in them.
//
//   - [Segments] splits a whole answer, [Scanner] the same answer while it arrives.
//     Both are one automaton, so they agree however the text is cut. What they
//     give, put together, is the text: nothing is lost and nothing is changed.
//   - [Candidates] finds every span that looks like JSON, broken or not, and [Rank]
//     puts the likeliest first.
//   - [ReadYAML] and [ReadXML] read an answer that is not JSON at all as a JSON object.
//
// A tag or a fence inside a string of JSON, inside code or inside code fences is
// content. Offsets are bytes of the text that was given. Time is linear in the text
// and memory bounded, whatever the text is.
package extract
