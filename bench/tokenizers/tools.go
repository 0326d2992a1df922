package main

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/eliben/go-sentencepiece"
	tiktokengo "github.com/pkoukk/tiktoken-go"
	codecs "github.com/tiktoken-go/tokenizer"

	"github.com/unfray/unfray/tokenizer"
	"github.com/unfray/unfray/vocab"
)

// A tool encodes text with one vocabulary.
type tool interface {
	// encode encodes the parts of a corpus, one after the other.
	encode(parts *parts) (answer, error)
	close()
}

// An opened tool with its package's version.
type opened struct {
	tool
	version string
}

// An answer is what a tool made of the parts.
type answer struct {
	took time.Duration
	ids  int
	sum  uint32 // CRC-32 of all ids as little-endian 32-bit numbers
}

// parts are stretches of a corpus, which end after newlines where they can.
type parts struct {
	path  string // of the corpus
	text  []byte
	cuts  [][2]int
	bytes int // of all parts
}

func (p *parts) part(i int) []byte { return p.text[p.cuts[i][0]:p.cuts[i][1]] }

// openers know the tools by name.
var openers = map[string]struct {
	python  bool // it runs in Python
	slow    bool // it encodes only a part of a corpus
	special bool // it takes a special token's text for the token, always
	open    func(e *environment, file string) (opened, error)
}{
	"unfray":         {open: openUnfray((*tokenizer.Tokenizer).Encode)},
	"unfray special": {open: openUnfray((*tokenizer.Tokenizer).EncodeSpecial)},
	"tiktoken":       {python: true, open: openPython("tiktoken")},
	"quicktok":       {python: true, open: openPython("quicktok")},
	"gigatoken":      {python: true, special: true, open: openPython("gigatoken")},
	"tokenizers":     {python: true, special: true, slow: true, open: openPython("tokenizers")},
	"sentencepiece":  {python: true, slow: true, open: openPython("sentencepiece")},
	"pkoukk":         {slow: true, open: openPkoukk},
	"tiktoken-go":    {slow: true, open: openTiktokenGo},
	"eliben":         {slow: true, open: openEliben},
}

// A goTool runs in this process.
type goTool[ID int | uint | vocab.ID] struct {
	into func(dst []ID, part []byte) ([]ID, error)
	ids  []ID
}

func (t *goTool[ID]) encode(p *parts) (answer, error) {
	var a answer
	var raw []byte
	for i := range p.cuts {
		part := p.part(i)
		start := time.Now()
		ids, err := t.into(t.ids[:0], part)
		a.took += time.Since(start)
		if err != nil {
			return a, err
		}
		t.ids, raw = ids, raw[:0]
		for _, id := range ids {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(id))
		}
		a.ids += len(ids)
		a.sum = crc32.Update(a.sum, crc32.IEEETable, raw)
	}
	return a, nil
}

func (t *goTool[ID]) close() {}

func openUnfray(encode func(*tokenizer.Tokenizer, []vocab.ID, []byte) []vocab.ID) func(*environment, string) (opened, error) {
	return func(e *environment, file string) (opened, error) {
		tok, err := tokenizer.Open(e.vocabPath(file))
		if err != nil {
			return opened{}, err
		}
		into := func(dst []vocab.ID, part []byte) ([]vocab.ID, error) { return encode(tok, dst, part), nil }
		into(nil, []byte("a")) // what is made at the first call
		return opened{&goTool[vocab.ID]{into: into}, "unfray"}, nil
	}
}

// moduleVersion returns "name version" of a module that this program links.
func moduleVersion(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == path {
			return strings.TrimPrefix(path, "github.com/") + " " + m.Version
		}
	}
	return path
}

// rankFile gives pkoukk/tiktoken-go the rank file at a path instead of a download.
type rankFile string

func (f rankFile) LoadTiktokenBpe(string) (map[string]int, error) {
	text, err := os.ReadFile(string(f))
	if err != nil {
		return nil, err
	}
	ranks := map[string]int{}
	for line := range strings.Lines(string(text)) {
		token, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		b, err := base64.StdEncoding.DecodeString(token)
		if err != nil {
			return nil, err
		}
		if ranks[string(b)], err = strconv.Atoi(number); err != nil {
			return nil, err
		}
	}
	return ranks, nil
}

func openPkoukk(e *environment, file string) (opened, error) {
	tiktokengo.SetBpeLoader(rankFile(e.vocabPath(file)))
	encoding, err := tiktokengo.GetEncoding(strings.TrimSuffix(file, ".tiktoken"))
	if err != nil {
		return opened{}, err
	}
	into := func(_ []int, part []byte) ([]int, error) { return encoding.EncodeOrdinary(string(part)), nil }
	return opened{&goTool[int]{into: into}, moduleVersion("github.com/pkoukk/tiktoken-go")}, nil
}

func openTiktokenGo(_ *environment, file string) (opened, error) {
	codec, err := codecs.Get(codecs.Encoding(strings.TrimSuffix(file, ".tiktoken")))
	if err != nil {
		return opened{}, err
	}
	into := func(_ []uint, part []byte) ([]uint, error) {
		ids, _, err := codec.Encode(string(part))
		return ids, err
	}
	return opened{&goTool[uint]{into: into}, moduleVersion("github.com/tiktoken-go/tokenizer")}, nil
}

func openEliben(e *environment, file string) (opened, error) {
	processor, err := sentencepiece.NewProcessorFromPath(e.vocabPath(file))
	if err != nil {
		return opened{}, err
	}
	into := func(dst []int, part []byte) ([]int, error) {
		for _, token := range processor.Encode(string(part)) {
			dst = append(dst, token.ID)
		}
		return dst, nil
	}
	return opened{&goTool[int]{into: into}, moduleVersion("github.com/eliben/go-sentencepiece")}, nil
}

// A pyTool is a process of contestants.py.
type pyTool struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func openPython(name string) func(*environment, string) (opened, error) {
	return func(e *environment, file string) (opened, error) {
		t, err := startPython(e.references)
		if err != nil {
			return opened{}, err
		}
		var got struct{ Version string }
		if err := t.ask(map[string]any{"open": name, "path": e.vocabPath(file)}, &got); err != nil {
			t.close()
			return opened{}, fmt.Errorf("%s: %w", name, err)
		}
		return opened{t, got.Version}, nil
	}
}

func startPython(packages string) (*pyTool, error) {
	script := "contestants.py"
	if _, err := os.Stat(script); err != nil {
		script = filepath.Join("tokenizers", script)
	}
	cmd := exec.Command("python3", script)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &pyTool{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

func (t *pyTool) ask(request, answer any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := t.in.Write(append(line, '\n')); err != nil {
		return err
	}
	if line, err = t.out.ReadBytes('\n'); err != nil {
		return fmt.Errorf("contestants.py: %w (its message is above)", err)
	}
	var failed struct{ Error string }
	if err := json.Unmarshal(line, &failed); err != nil || failed.Error != "" {
		return errors.Join(err, errRefused{failed.Error})
	}
	return json.Unmarshal(line, answer)
}

// errRefused is what a tool said that did not do what it was asked.
type errRefused struct{ message string }

func (e errRefused) Error() string { return e.message }

func (t *pyTool) encode(p *parts) (answer, error) {
	var got struct {
		Seconds float64
		IDs     int
		Sum     uint32
	}
	if err := t.ask(map[string]any{"encode": p.path, "cuts": p.cuts}, &got); err != nil {
		return answer{}, err
	}
	return answer{seconds(got.Seconds), got.IDs, got.Sum}, nil
}

func (t *pyTool) close() {
	t.in.Close()
	t.cmd.Wait() // its exit status says nothing that an answer did not
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
