// Command recovery measures text repair beside ftfy, as Markdown: megabytes per second of CPU time on one core, the best
// of three runs. ftfy runs in Python; where it is not installed (pip install ftfy==6.3.1) its column is left out.
// PYTHON names another interpreter.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/unfray/unfray/recovery/textrepair"
)

var texts = []struct{ name, line string }{
	{"English, ASCII", "The quick brown fox jumps over the lazy dog, and nothing in this line is damaged.\n"},
	{"French", "L’été dernier, j’ai mangé des crêpes à Besançon — c’était délicieux et très apprécié.\n"},
	{"Russian", "Привет, как дела? Сегодня хорошая погода, и мы идём гулять в парк с друзьями.\n"},
	{"Chinese", "敏捷的棕色狐狸跳过了懒狗，这一行没有任何损坏。今天天气很好，我们去公园散步。\n"},
	{"English, mojibake in each line", "Itâ€™s a cafÃ© with naÃ¯ve dÃ©cor, â€œquotedâ€\u009d text and more of the same.\n"},
}

const size = 1 << 20 // bytes of each text

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "recovery:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "recovery-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var paths []string
	var ours []float64
	for i, t := range texts {
		text := bytes.Repeat([]byte(t.line), size/len(t.line))
		path := filepath.Join(dir, fmt.Sprintf("%d.txt", i))
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		paths = append(paths, path)
		ours = append(ours, speed(text))
	}
	theirs, err := ftfySpeeds(paths)
	if err != nil {
		fmt.Fprintln(os.Stderr, "recovery: ftfy is left out:", err)
	}
	fmt.Println("| text | unfray, MB/s | ftfy, MB/s |\n|---|---|---|")
	for i, t := range texts {
		other := "–"
		if theirs != nil {
			other = fmt.Sprintf("%.2f", theirs[i])
		}
		fmt.Printf("| %s | %.0f | %s |\n", t.name, ours[i], other)
	}
	return nil
}

func speed(text []byte) float64 {
	best := time.Duration(1<<63 - 1)
	for range 3 {
		start := cpuTime()
		for range 4 {
			textrepair.Repair(text, textrepair.Options{})
		}
		best = min(best, (cpuTime()-start)/4)
	}
	return float64(len(text)) / 1e6 / best.Seconds()
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the arguments are constants
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func ftfySpeeds(paths []string) ([]float64, error) {
	python := cmp.Or(os.Getenv("PYTHON"), "python3")
	out, err := exec.Command(python, append([]string{filepath.Join("recovery", "python", "ftfy_speed.py")}, paths...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w (run in bench, with a Python that has ftfy)", python, err)
	}
	var speeds []float64
	for line := range strings.Lines(string(out)) {
		var path string
		var seconds float64
		var characters int
		if _, err := fmt.Sscan(line, &path, &seconds, &characters); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		speeds = append(speeds, size/1e6/seconds)
	}
	if len(speeds) != len(paths) {
		return nil, fmt.Errorf("%d results for %d texts", len(speeds), len(paths))
	}
	return speeds, nil
}
