// Package live reads what running engines tell about their prefix caches: the
// counters of their metrics, their settings, and the events of vLLM and SGLang
// that say which blocks are stored and removed.
//
//   - [Probe.Read] takes the counters, [Probe.Settings] what a simulator of the
//     server needs.
//   - [Subscribe] follows the events over ZeroMQ, [Decode] reads one batch.
//   - [Mirror] keeps what the events say is cached and answers how much of a
//     prompt would be found.
package live
