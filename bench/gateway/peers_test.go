//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func toyPeers(t *testing.T) []*peer {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nginx", "envoy", "litellm", "unfray"} {
		if err := os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return peers(dir, filepath.Join(dir, "bin", "unfray"), defaultArgs, []string{"stable"})
}

// Every configuration and command names the mock, its own port and no place that was not filled in.
func TestPeersAreFilledIn(t *testing.T) {
	all := toyPeers(t)
	var names []string
	for _, p := range all {
		names = append(names, p.name)
		if p.command == nil {
			continue
		}
		at := place{Listen: "127.0.0.1:1234", Port: "1234", Upstream: "127.0.0.1:5678", Dir: "/d", Config: "/d/config.yaml", Kind: "vllm",
			Heal: p.heal, Tokenizer: "/t.gguf", Workers: peerWorkers, Model: modelName}
		config, command, err := p.fill(at)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		text := string(config) + strings.Join(command, " ")
		if !strings.Contains(text, "1234") || !strings.Contains(text, "5678") || strings.Contains(text, "{{") {
			t.Errorf("%s: %s", p.name, text)
		}
		if p.config == "" && strings.ContainsAny(text, "{}") {
			t.Errorf("%s: %s", p.name, text)
		}
	}
	want := []string{"direct", "nginx", "Envoy", "LiteLLM", "unfray, off", "unfray, stable"}
	if !slices.Equal(names, want) {
		t.Errorf("peers %q, want %q", names, want)
	}
	off, on := all[4], all[5]
	_, command, err := off.fill(place{Listen: "l:1", Upstream: "u:2", Kind: "vllm", Heal: off.heal, Tokenizer: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(command[1:], " "); got != "serve --listen l:1 --upstream vllm=http://u:2 --tokenizer t --heal off" {
		t.Errorf("unfray's command is %s", got)
	}
	if !off.identical || on.identical || on.heal != "stable" {
		t.Errorf("without healing answers must pass as they are, with it they need not: %+v, %+v", off, on)
	}
	if left := peers(t.TempDir(), "", "", nil); slices.ContainsFunc(left, func(p *peer) bool { return p.name != "direct" && p.name != "nginx" }) {
		t.Errorf("what is not installed is measured: %d", len(left))
	}
}

func TestLiteLLMRoutes(t *testing.T) {
	for _, p := range toyPeers(t) {
		if p.name != "LiteLLM" {
			continue
		}
		for chat, want := range map[bool]string{false: "model: text-completion-openai/mock", true: "model: openai/mock"} {
			config, _, err := p.fill(place{Upstream: "u:2", Chat: chat, Model: modelName})
			if err != nil || !strings.Contains(string(config), want) {
				t.Errorf("chat %v: %v\n%s", chat, err, config)
			}
		}
	}
}

// nginx is the one peer that a machine may have anyway.
func TestNginxTakesItsConfiguration(t *testing.T) {
	path := findTool("", "nginx", "/usr/sbin/nginx")
	if path == "" {
		t.Skip("nginx is not installed")
	}
	dir := t.TempDir()
	all := peers("", "", "", nil)
	at := place{Listen: "127.0.0.1:1", Port: "1", Upstream: "127.0.0.1:2", Dir: dir, Config: filepath.Join(dir, "config.yaml"), Workers: peerWorkers}
	config, command, err := all[1].fill(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at.Config, config, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), command[0], append(command[1:], "-t")...).CombinedOutput(); err != nil && !strings.Contains(string(out), "bind()") {
		t.Errorf("%v: %s", err, out)
	}
}

// A process's children are counted with it and end with it.
func TestProcess(t *testing.T) {
	logs := filepath.Join(t.TempDir(), "log")
	p, err := startProcess([]string{"sh", "-c", "sleep 600 & sleep 600 & echo up; wait"}, nil, "", logs)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for text := ""; text != "up\n" && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		b, _ := os.ReadFile(logs)
		text = string(b)
	}
	if runtime.GOOS == "linux" {
		u := p.use()
		for ; u.processes < 3 && ctx.Err() == nil; u = p.use() {
			time.Sleep(5 * time.Millisecond)
		}
		if u.processes != 3 || u.rss <= 0 || u.pss <= 0 || u.pss > u.rss {
			t.Errorf("%+v", u)
		}
	}
	p.stop()
	for syscall.Kill(-p.cmd.Process.Pid, 0) == nil && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, 0); err == nil {
		t.Error("its children still run")
	}
	if err := p.failure("it ended"); !strings.Contains(err.Error(), "up") {
		t.Errorf("the log is not shown: %v", err)
	}
}

func TestParseStat(t *testing.T) {
	line := "123 (a b) c) S 1 77 77 0 -1 4194560 100 0 0 0 25 17 0 0 20 0 1 0 5 1000 10"
	if group, cpu, ok := parseStat([]byte(line)); !ok || group != 77 || cpu != 420*time.Millisecond {
		t.Errorf("group %d, cpu %v, %v", group, cpu, ok)
	}
	for _, line := range []string{"", "1 (x", "1 (x) S 1 2"} {
		if _, _, ok := parseStat([]byte(line)); ok {
			t.Errorf("%q is read", line)
		}
	}
	if got := sizeIn([]byte("Rss:   12 kB\nPss:  3 kB\n"), "Pss"); got != 3<<10 {
		t.Errorf("Pss is %d", got)
	}
}

func TestChooseCPUs(t *testing.T) {
	for _, test := range []struct {
		n             int
		gateways, own string
	}{{1, "0", "0"}, {2, "0,1", "0,1"}, {3, "0,1", "0,1"}, {4, "0,1", "2-3"}, {16, "0,1", "2-15"}} {
		if g, o := chooseCPUs("", "", test.n); g != test.gateways || o != test.own {
			t.Errorf("of %d: %s and %s", test.n, g, o)
		}
	}
	if g, o := chooseCPUs("4", "", 2); g != "4" || o != "4" {
		t.Errorf("%s and %s", g, o)
	}
}
