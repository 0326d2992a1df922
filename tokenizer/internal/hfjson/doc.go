// Package hfjson reads the files in which the Hugging Face tokenizers library
// keeps a tokenizer: tokenizer.json, and of tokenizer_config.json,
// special_tokens_map.json, config.json and generation_config.json what tells
// how special tokens are used.
//
//   - What the file declares is either represented or refused by name:
//     component types and fields that are not known are an error with the
//     cause ErrUnsupported, the path in the file and the byte offset.
//   - The order of keys does not matter; a key that stands twice is an error.
//   - Time is linear in the file and memory at most a few times its size. No
//     string of a vocabulary or of its merges is allocated by itself: they
//     stay where they stand in the file's bytes.
//
// Meanings and defaults are those of tokenizers 0.23 (Rust). The package only
// parses: nothing here normalizes, splits or encodes.
package hfjson
