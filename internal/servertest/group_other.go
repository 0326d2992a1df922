//go:build !unix

package servertest

import (
	"os"
	"os/exec"
)

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}

// killGroup kills the command alone; children that watch their standard input end with it.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// unlink does nothing where an open file keeps its name.
func unlink(*os.File) {}
