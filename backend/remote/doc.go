// Package remote runs models on servers: it implements package backend over
// HTTP, one file group for each kind of server.
//
//   - Token IDs go out and token IDs come back. Bytes are those of the tokenizer
//     at hand, never a server's text.
//   - What a server can do is probed when it is opened, see [Inspection]. The
//     tokenizer is compared with the server's own; where they differ no prompt
//     is healed.
//   - A replay is stated once, in the server's own constraint language, wherever
//     that can say it; else it is driven token by token under the masks.
//   - An answer is read within bounds and checked. What it could not be is a
//     [*backend.ProtocolError], a refusal a [*backend.UpstreamError]; no answer
//     is made up, and none is asked for twice.
package remote
