// Package unfray goes from a prompt to a healed continuation in one call.
//
// A [Model] joins a backend that runs a model with the tokenizer of that model.
// [Model.Generate] heals the prompt's end, streams the continuation and cuts it
// at stop strings; [Model.Complete] collects the stream.
//
//   - The text returned continues exactly the prompt that was given: the bytes
//     that healing makes the model produce again are cut off, to the byte.
//   - Streamed chunks joined are the unstreamed text.
//   - Usage, token limits, stop strings and offsets speak of the user's prompt
//     and its continuation. Rolled-back and replayed tokens do not show.
//   - What healing did is in [Result.Healing].
//
// Where to find what:
//
//	vocab      token IDs and their exact bytes, prefix ranges, masks
//	tokenizer  text to token IDs, as the model's own tokenizer does it
//	boundary   which tokens of a prompt's end can still change, and why
//	heal       how far to roll back, and the mask for each token after that
//	backend    what is asked of a model server
//	engine     llama.cpp in this process, as a backend
//	gateway    the HTTP server
package unfray
