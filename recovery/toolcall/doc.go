// Package toolcall reads the tool calls that models write as text.
//
// Each model family has a form of its own for a call: JSON between tags, a name
// and arguments between special tokens, XML-like parameters, Python calls. Find
// takes a whole text, Stream the same in pieces; both give names, arguments as
// strict JSON objects, and the text without the calls.
//
//   - Text that only speaks of calls stays text: in code fences and code spans, in
//     the strings of a JSON answer, and where no call follows a marker. Forms without
//     a marker count only if the caller's tools name the function.
//   - A name is given whole or not at all. A call that breaks off is never complete.
//   - Arguments that are strict JSON keep every byte. Others are repaired by package
//     jsonrepair, and the call holds the receipt.
//   - Time is linear in the text, and one automaton reads it however it arrives.
package toolcall
