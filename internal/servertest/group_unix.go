//go:build unix

package servertest

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes the command lead a process group, so that its children end with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the command and its children.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// unlink removes the file's name; its space is freed with its last descriptor.
func unlink(f *os.File) { _ = os.Remove(f.Name()) }
