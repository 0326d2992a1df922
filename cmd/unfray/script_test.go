package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"rsc.io/script"
	"rsc.io/script/scripttest"

	"github.com/unfray/unfray/backend/backendtest"
	"github.com/unfray/unfray/engine"
)

// TestScripts runs the command line as testdata/script/*.txt say. Besides the
// usual commands of rsc.io/script there are
//
//	unfray ARG… [< FILE]        run the command in this process; fails unless it exits 0
//	exit STATUS ARG… [< FILE]   the same, but it must exit with STATUS
//
// and the conditions [linked], true where the embedded engine is linked in, and
// [engine], true where there also is a model to run. toy.gguf is the vocabulary of package backendtest;
// $MODEL and $LIB name the real model and its library.
func TestScripts(t *testing.T) {
	e := script.NewEngine()
	e.Conds = scripttest.DefaultConds()
	e.Cmds = scripttest.DefaultCmds()
	model, lib := os.Getenv("UNFRAY_TEST_MODEL"), os.Getenv("UNFRAY_TEST_LIB")
	e.Conds["linked"] = script.BoolCondition("the embedded engine is linked in", engine.Linked)
	e.Conds["engine"] = script.BoolCondition("the embedded engine and a model are there", engine.Linked && model != "" && lib != "")
	e.Cmds["unfray"] = script.Command(script.CmdUsage{Summary: "run unfray", Args: "args… [< file]"},
		func(s *script.State, args ...string) (script.WaitFunc, error) { return runIn(s, 0, args) })
	e.Cmds["exit"] = script.Command(script.CmdUsage{Summary: "run unfray, which must exit with a status", Args: "status args… [< file]"},
		func(s *script.State, args ...string) (script.WaitFunc, error) {
			if len(args) == 0 {
				return nil, script.ErrUsage
			}
			want, err := strconv.Atoi(args[0])
			if err != nil {
				return nil, script.ErrUsage
			}
			return runIn(s, want, args[1:])
		})
	toy := t.TempDir() + "/toy.gguf"
	if err := os.WriteFile(toy, backendtest.GGUF(backendtest.VocabularyOptions{}), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"TOY=" + toy, "MODEL=" + model, "LIB=" + lib}
	scripttest.Test(t, t.Context(), e, env, "testdata/script/*.txt")
}

// runIn runs unfray in the script's folder.
func runIn(s *script.State, want int, args []string) (script.WaitFunc, error) {
	var stdin io.Reader = strings.NewReader("")
	if n := len(args); n >= 2 && args[n-2] == "<" {
		b, err := os.ReadFile(s.Path(args[n-1]))
		if err != nil {
			return nil, err
		}
		stdin, args = bytes.NewReader(b), args[:n-2]
	}
	for i, a := range args {
		if name, ok := strings.CutPrefix(a, "./"); ok {
			args[i] = s.Path(name)
		}
	}
	var stdout, stderr bytes.Buffer
	got := run(s.Context(), args, stdin, &stdout, &stderr)
	return func(*script.State) (string, string, error) {
		if got != want {
			return stdout.String(), stderr.String(), fmt.Errorf("exit status %d, want %d: %w", got, want, errors.New(stderr.String()))
		}
		return stdout.String(), stderr.String(), nil
	}, nil
}
