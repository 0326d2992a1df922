// Package textrepair mends text whose characters were damaged on the way from a model: UTF-8 read as another encoding
// (mojibake), HTML entities, halves of surrogate pairs, control characters and terminal escapes, invisible characters,
// the marks of a tokenizer's vocabulary. It holds that
//
//   - text that shows no damage comes back byte for byte, and what is in doubt is a finding, not an edit;
//   - every change is in the receipt, at its offset in the input, and nothing else changes;
//   - no character is invented: bytes that are gone stay U+FFFD;
//   - quotes, widths, ligatures and composed characters are matters of style, and change on request only;
//   - a [Stream] gives what [Repair] gives, however the text arrives, and holds back at most [MaxHold] bytes.
//
// The text is looked at line by line, and a line of more than [MaxLine] bytes in pieces. What a rule takes for evidence lies
// in the same line, or for entities in the text before. A repaired text is stable: repairing it again changes nothing, but
// for entities, of which one level is decoded (&amp;lt; becomes &lt;), in lines longer than [MaxLine], where a line
// end was put in and the line became two, and where what was dropped stood inside of a code fence's mark.
//
// Text that is JSON goes through [RepairJSON], which looks at the strings' values: on the text of a JSON document a mended
// quotation mark would end a string.
package textrepair
