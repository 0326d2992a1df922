//go:build !llama

package engine

// Linked says whether this build contains the engine: whether it was built
// with the tag llama.
const Linked = false

// Open returns [ErrNotLinked]: this build was made without the tag llama.
func Open(Options) (*Engine, error) { return nil, ErrNotLinked }
