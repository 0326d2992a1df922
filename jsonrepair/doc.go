// Package jsonrepair turns what was meant to be JSON into JSON, by syntax
// alone, and says exactly what it changed.
//
// A text that is valid by RFC 8259 comes back byte for byte. Anything else is
// read by one automaton with an explicit stack: it commits each byte once,
// looks ahead at most [Options.Window] bytes where a byte can be read in two
// ways, and records an [Edit] for every byte that it inserts, drops or
// replaces. So it takes linear time, keeps no more than its window and two bits
// for each open container, and gives the same result however the text arrives:
// [Repair] takes a whole document, [Stream] the same in pieces. Only where a
// document is ambiguous does hindsight count: Repair then weighs readings, of
// which a stream commits the one that takes each place by itself.
package jsonrepair
