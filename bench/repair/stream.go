package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/unfray/unfray/jsonrepair"
)

// pieceBytes is how many bytes of a stream come at once.
const pieceBytes = 8

// streamed reads a document in pieces, and with views tells of its values, as the
// stream parser does that it is compared with.
func streamed(views bool) func(input []byte) ([]byte, error) {
	return func(input []byte) ([]byte, error) {
		s := jsonrepair.NewStream(jsonrepair.Options{})
		var out []byte
		var v jsonrepair.View
		take := func() error {
			text := s.Committed()
			out = append(out, text...)
			if !views {
				return nil
			}
			if _, err := v.Write(text); err != nil {
				return err
			}
			for range v.Events() {
			}
			return nil
		}
		for len(input) > 0 {
			n := min(pieceBytes, len(input))
			if _, err := s.Write(input[:n]); err != nil {
				return nil, err
			}
			if err := take(); err != nil {
				return nil, err
			}
			input = input[n:]
		}
		if r := s.Close(); r.Err != nil {
			return nil, r.Err
		}
		return out, take()
	}
}

// printStream compares with a parser that reads strict JSON as it comes and mends
// nothing.
func printStream(w io.Writer, _ []*contestant) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	all := []*contestant{
		{name: "unfray", command: func() *exec.Cmd { return exec.Command(self, "serve", "unfray-stream") }},
		{name: "unfray with events", command: func() *exec.Cmd { return exec.Command(self, "serve", "unfray-events") }},
	}
	if clients := os.Getenv("UNFRAY_TEST_CLIENTS"); clients != "" {
		modules := filepath.Join(clients, "javascript", "node_modules")
		all = append(all, &contestant{name: "@streamparser/json " + npmVersion(modules, "@streamparser/json"), command: func() *exec.Cmd {
			return script("NODE_PATH="+modules, "node", "javascript/stream.cjs")
		}})
	}
	fmt.Fprintf(w, "Milliseconds for a document that comes in pieces of %d bytes.\n\n| contestant | 24 KB | 98 KB |\n|---|---:|---:|\n", pieceBytes)
	for _, c := range all {
		fmt.Fprintf(w, "| %s |", c.name)
		for _, size := range []int{24 << 10, 98 << 10} {
			_, took, err := c.median([]byte(writeDocument(size, ",", quoted)))
			if err != nil {
				fmt.Fprintf(w, " %v |", err)
				continue
			}
			fmt.Fprintf(w, " %.2f |", took.Seconds()*1000)
		}
		fmt.Fprintln(w)
		c.stop()
	}
	return nil
}
