package tokenizer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/unfray/unfray/internal/gguf"
	"github.com/unfray/unfray/tokenizer/internal/hfjson"
	"github.com/unfray/unfray/tokenizer/internal/spmodel"
	"github.com/unfray/unfray/tokenizer/internal/tekken"
	"github.com/unfray/unfray/tokenizer/internal/tiktoken"
)

// Reference is the program whose IDs count where programs differ about the
// same vocabulary.
type Reference uint8

const (
	// ByFile: llama.cpp for GGUF, for other files the program they are made
	// for.
	ByFile Reference = iota
	// HuggingFace brings to a GGUF file what it does not say: Qwen's NFC, and
	// added tokens found from left to right.
	HuggingFace
	// LlamaCpp leaves out of a tokenizer.json what llama.cpp does not do:
	// Unicode normal forms are not made, and of added tokens the longest goes
	// first.
	LlamaCpp
)

// Open is [OpenAs] with the reference that goes with the file.
func Open(path string) (*Tokenizer, error) { return OpenAs(path, ByFile) }

// OpenAs reads a tokenizer. The path is that of a
//
//   - tokenizer.json of Hugging Face tokenizers; the files beside it are asked
//     for the special tokens' roles
//   - .tiktoken rank file of a published encoding, known by its content; or
//     NAME=PATH, such as o200k_harmony=o200k_base.tiktoken
//   - SentencePiece .model
//   - tekken.json of Mistral
//   - .gguf, of which only the metadata is read
//   - folder that holds one of these
//
// What kind of file it is is told by its content, not its name.
func OpenAs(path string, ref Reference) (*Tokenizer, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if name, file, ok := strings.Cut(path, "="); ok {
			return openNamed(name, file)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return openFolder(path, ref)
	}
	t, err := openFile(path, ref)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// folderFiles are the names looked for in a folder, the first that is there.
var folderFiles = []string{"tokenizer.json", "tekken.json", "tokenizer.model", "*.model", "*.tiktoken", "*.gguf"}

func openFolder(path string, ref Reference) (*Tokenizer, error) {
	for _, name := range folderFiles {
		found, err := filepath.Glob(filepath.Join(globEscape(path), name))
		if err != nil {
			return nil, err
		}
		switch {
		case len(found) == 1:
			return OpenAs(found[0], ref)
		case len(found) > 1:
			return nil, fmt.Errorf("%s holds %d files %s: name the one to read", path, len(found), name)
		}
	}
	return nil, fmt.Errorf("%s holds no tokenizer: none of %s is there", path, strings.Join(folderFiles, ", "))
}

// globEscape keeps the characters of a path from meaning anything in a pattern.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// openNamed reads a rank file as the encoding of the name.
func openNamed(name, path string) (*Tokenizer, error) {
	if _, ok := tiktoken.Known(name); !ok {
		return nil, fmt.Errorf("%s=%s: %q is no encoding; known are %s", name, path, name, strings.Join(tiktoken.Names(), ", "))
	}
	ranks, err := tiktoken.Open(path)
	if err != nil {
		return nil, err
	}
	t, err := fromRanks(ranks, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// openFile reads a file, and those beside it where they have a say.
func openFile(path string, ref Reference) (*Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, path, ref, readConfig)
}

// Read is [OpenAs] for the content of a file, which data begins with and name
// names: it tells the encoding of a rank file. There are no files beside a
// tokenizer.json, so that special tokens have the roles that it alone gives them.
func Read(data io.ReadSeeker, name string, ref Reference) (*Tokenizer, error) {
	return read(data, name, ref, func(string) (*hfjson.Config, error) { return &hfjson.Config{}, nil })
}

// read tells the kind of a file by how it begins. config reads the files in a
// folder that speak of special tokens.
func read(f io.ReadSeeker, path string, ref Reference, config func(folder string) (*hfjson.Config, error)) (*Tokenizer, error) {
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	start := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	switch {
	case n == 0:
		return nil, errors.New("the file is empty")
	case bytes.HasPrefix(head, []byte("GGUF")):
		file, err := gguf.Read(f, gguf.Limits{})
		if err != nil {
			return nil, err
		}
		return fromGGUF(file, ref)
	case bytes.HasPrefix(start, []byte("{")) && isTekken(path, start):
		file, err := tekken.Read(f)
		if err != nil {
			return nil, err
		}
		return fromTekken(file)
	case bytes.HasPrefix(start, []byte("{")):
		file, err := hfjson.Read(f)
		if err != nil {
			return nil, err
		}
		roles, err := config(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		return fromJSON(file, roles, ref)
	case isRankFile(head):
		ranks, err := tiktoken.Read(f)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".tiktoken")
		if _, known := tiktoken.Known(name); !known {
			name = ""
		}
		return fromRanks(ranks, name)
	case head[0] == 0x0a: // field 1 of ModelProto: its pieces come first
		model, err := spmodel.Read(f)
		if err != nil {
			return nil, err
		}
		return fromPieces(model)
	}
	return nil, errors.New("this is no tokenizer file: expected a tokenizer.json, a tekken.json, a .tiktoken rank file, a SentencePiece .model or a .gguf")
}

// isTekken tells tekken.json from tokenizer.json.
func isTekken(path string, start []byte) bool {
	return strings.Contains(filepath.Base(path), "tekken") ||
		bytes.Contains(start, []byte(`"default_vocab_size"`)) || bytes.Contains(start, []byte(`"default_num_special_tokens"`))
}

// isRankFile reports whether the file begins with a line of base64, a space and
// a number.
func isRankFile(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	token, rank, ok := bytes.Cut(bytes.TrimRight(line, "\r"), []byte(" "))
	if !ok || len(token) == 0 || len(rank) == 0 {
		return false
	}
	for _, c := range token {
		if !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=') {
			return false
		}
	}
	for _, c := range rank {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// maxConfigBytes bounds the files beside tokenizer.json.
const maxConfigBytes = 16 << 20

// readConfig reads what the files of a folder say about special tokens. Of
// several that speak of one thing the first counts.
func readConfig(folder string) (*hfjson.Config, error) {
	all := &hfjson.Config{}
	for _, name := range []string{"tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "config.json"} {
		f, err := os.Open(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
		f.Close()
		if err != nil {
			return nil, err
		}
		if len(data) > maxConfigBytes {
			return nil, fmt.Errorf("%s has more than the %d bytes that are read", f.Name(), maxConfigBytes)
		}
		c, err := hfjson.ParseConfig(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		all.BOS, all.EOS, all.Pad = cmp.Or(all.BOS, c.BOS), cmp.Or(all.EOS, c.EOS), cmp.Or(all.Pad, c.Pad)
		if all.EOSIDs == nil {
			all.EOSIDs = c.EOSIDs
		}
	}
	return all, nil
}
