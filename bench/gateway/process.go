//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A process is a server with all that it starts: they share a process group.
type process struct {
	cmd    *exec.Cmd
	logs   string // file with what it prints
	exited chan struct{}
}

// startProcess starts a command on some CPUs, as taskset names them; "" leaves it free. Output goes to a file.
func startProcess(command, env []string, cpus, logs string) (*process, error) {
	command = pinned(command, cpus)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := os.Create(logs)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, logs: logs, exited: make(chan struct{})}
	go func() {
		cmd.Wait() // how it ended is in its log
		close(p.exited)
	}()
	return p, nil
}

// pinned returns the command that runs a command on some CPUs, where taskset is installed.
func pinned(command []string, cpus string) []string {
	taskset, err := exec.LookPath("taskset")
	if err != nil || cpus == "" {
		return command
	}
	return append([]string{taskset, "-c", cpus}, command...)
}

// stop ends the group: it asks, and after three seconds kills.
func (p *process) stop() {
	group := -p.cmd.Process.Pid
	syscall.Kill(group, syscall.SIGTERM)
	for wait := time.Now().Add(3 * time.Second); time.Now().Before(wait) && syscall.Kill(group, 0) == nil; {
		time.Sleep(20 * time.Millisecond)
	}
	syscall.Kill(group, syscall.SIGKILL)
	<-p.exited
}

// failure returns an error with the end of the process's log.
func (p *process) failure(what string) error {
	text, _ := os.ReadFile(p.logs)
	return fmt.Errorf("%s; its log ends with:\n%s", what, text[max(0, len(text)-2000):])
}

// A usage is what a process group has used up to now.
type usage struct {
	processes int
	cpu       time.Duration
	rss       int64 // bytes; pages that several processes share are counted for each
	pss       int64 // bytes; shared pages are divided among those that share them
}

// use reads the usage of the group. Where there is no /proc it is zero.
func (p *process) use() (u usage) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		group, cpu, ok := parseStat(text)
		if !ok || group != p.cmd.Process.Pid {
			continue
		}
		u.processes++
		u.cpu += cpu
		rollup, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "smaps_rollup"))
		u.rss += sizeIn(rollup, "Rss")
		u.pss += sizeIn(rollup, "Pss")
	}
	return u
}

// clockTick is the unit of CPU times in /proc: USER_HZ, which is 100 on every architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// parseStat reads the process group and the CPU time out of /proc/PID/stat.
func parseStat(text []byte) (group int, cpu time.Duration, ok bool) {
	// The second field is a name in parentheses, which may hold blanks and parentheses.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, 0, false
	}
	number := func(i int) int64 {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		ok = ok && err == nil
		return n
	}
	ok = true
	group = int(number(2))
	cpu = time.Duration(number(11)+number(12)) * clockTick
	return group, cpu, ok
}

// sizeIn returns the bytes that a line of smaps_rollup gives in kB.
func sizeIn(rollup []byte, name string) int64 {
	for line := range strings.Lines(string(rollup)) {
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == name+":" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}
