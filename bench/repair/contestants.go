package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	kaptinlin "github.com/kaptinlin/jsonrepair"

	"github.com/unfray/unfray/jsonrepair"
)

// A request and an answer are a line of JSON each, to a contestant's process and from it.
type request struct {
	Input []byte `json:"input"`
}

type answer struct {
	Seconds float64 `json:"seconds"` // of the call alone
	Output  []byte  `json:"output"`
	Error   string  `json:"error"`
}

// A contestant is a repairer in a process of its own, which runs while it is needed.
type contestant struct {
	name    string // with its version
	variant bool   // the one before it, with another option: speed leaves it out
	command func() *exec.Cmd

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// goRepairers are what serve runs.
var goRepairers = map[string]func(input []byte) ([]byte, error){
	"unfray":        unfray(jsonrepair.Options{}),
	"unfray-strict": unfray(jsonrepair.Options{Strict: true}),
	"unfray-stream": streamed(false),
	"unfray-events": streamed(true),
	"kaptinlin": func(input []byte) ([]byte, error) {
		text, err := kaptinlin.Repair(string(input))
		return []byte(text), err
	},
}

func unfray(o jsonrepair.Options) func(input []byte) ([]byte, error) {
	return func(input []byte) ([]byte, error) {
		r := jsonrepair.Repair(input, o)
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Text, nil // none where an ambiguous document is refused
	}
}

// serve answers requests until their end.
func serve(name string, in io.Reader, out io.Writer) error {
	repair, lines, enc := goRepairers[name], bufio.NewReader(in), json.NewEncoder(out)
	if repair == nil {
		return fmt.Errorf("serve: there is no %q", name)
	}
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var q request
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		if err := enc.Encode(call(repair, q.Input)); err != nil {
			return err
		}
	}
}

func call(repair func([]byte) ([]byte, error), input []byte) (a answer) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			a = answer{Seconds: time.Since(start).Seconds(), Error: fmt.Sprintf("panic: %v", p)}
		}
	}()
	output, err := repair(input)
	a.Seconds = time.Since(start).Seconds()
	if err != nil {
		a.Error = err.Error()
		return a
	}
	a.Output = output
	return a
}

// openContestants returns unfray first and then the others; clients is where those that are not Go are installed.
func openContestants(clients string) ([]*contestant, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	goProcess := func(name string) func() *exec.Cmd {
		return func() *exec.Cmd { return exec.Command(self, "serve", name) }
	}
	all := []*contestant{
		{name: "unfray", command: goProcess("unfray")},
		{name: "unfray, strict", variant: true, command: goProcess("unfray-strict")},
		{name: moduleVersion("github.com/kaptinlin/jsonrepair"), command: goProcess("kaptinlin")},
	}
	if clients != "" {
		modules, packages := filepath.Join(clients, "javascript", "node_modules"), filepath.Join(clients, "python")
		all = append(all,
			&contestant{name: "jsonrepair " + npmVersion(modules, "jsonrepair"), command: func() *exec.Cmd {
				return script("NODE_PATH="+modules, "node", "javascript/worker.cjs")
			}},
			&contestant{name: pipVersion(packages, "json_repair"), command: func() *exec.Cmd {
				return script("PYTHONPATH="+packages, "python3", "python/worker.py")
			}})
	}
	if *only != "" {
		wanted := strings.Split(*only, ",")
		all = slices.DeleteFunc(all, func(c *contestant) bool {
			return !slices.ContainsFunc(wanted, func(w string) bool { return strings.HasPrefix(c.name, w) })
		})
	}
	if len(all) == 0 {
		return nil, errors.New("no contestant is left by -only")
	}
	return all, nil
}

// script returns a command that runs a file of this folder.
func script(env, interpreter, file string) *exec.Cmd {
	if _, err := os.Stat(file); err != nil {
		file = filepath.Join("repair", file)
	}
	cmd := exec.Command(interpreter, file)
	cmd.Env = append(os.Environ(), env, "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

func (c *contestant) start() (err error) {
	c.cmd = c.command()
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	c.out = bufio.NewReader(out)
	return c.cmd.Start()
}

func (c *contestant) stop() {
	if c.cmd != nil {
		c.in.Close()
		c.cmd.Process.Kill()
		c.cmd.Wait() // its exit status says nothing that an answer did not
		c.cmd = nil
	}
}

// errLate is the error of a call that took longer than -limit.
var errLate = errors.New("late")

// repair returns what a contestant makes of an input and how long that took.
func (c *contestant) repair(input []byte) ([]byte, time.Duration, error) {
	if c.cmd == nil {
		if err := c.start(); err != nil {
			return nil, 0, err
		}
	}
	line, err := json.Marshal(request{input})
	if err != nil {
		return nil, 0, err
	}
	var a answer
	done := make(chan error, 1)
	go func() { // it ends with the answer, or with the process
		done <- c.exchange(append(line, '\n'), &a)
	}()
	// The lines themselves take time too: one second for each 8 MB.
	late := time.NewTimer(*limit + time.Duration(len(line)/8)*time.Microsecond)
	defer late.Stop()
	select {
	case err := <-done:
		if err != nil {
			c.stop()
			return nil, 0, fmt.Errorf("its process ended: %w", err)
		}
	case <-late.C:
		c.cmd.Process.Kill()
		<-done
		c.stop()
		return nil, *limit, errLate
	}
	took := time.Duration(a.Seconds * float64(time.Second))
	switch {
	case took > *limit:
		return nil, *limit, errLate
	case a.Error != "":
		return nil, took, errors.New(a.Error)
	}
	return a.Output, took, nil
}

func (c *contestant) exchange(line []byte, a *answer) error {
	if _, err := c.in.Write(line); err != nil {
		return err
	}
	got, err := c.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(got, a)
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

// npmVersion returns the version of an installed package, or "".
func npmVersion(modules, name string) string {
	var p struct{ Version string }
	text, _ := os.ReadFile(filepath.Join(modules, name, "package.json"))
	json.Unmarshal(text, &p) // without a version there is none to show
	return p.Version
}

// pipVersion returns "name version" of an installed package.
func pipVersion(packages, name string) string {
	found, _ := filepath.Glob(filepath.Join(packages, name+"-*.dist-info"))
	if len(found) == 0 {
		return name
	}
	return name + " " + strings.TrimPrefix(strings.TrimSuffix(filepath.Base(found[0]), ".dist-info"), name+"-")
}
