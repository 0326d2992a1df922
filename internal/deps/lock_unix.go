//go:build unix

package deps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock takes the exclusive lock that path stands for, calling wait once if somebody else holds it. The kernel drops the
// lock with the process, so none is ever left behind.
func lock(ctx context.Context, path string, wait func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("deps: lock: %w", err)
	}
	for tries := 0; ; tries++ {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("deps: lock %s: %w", path, err)
		}
		if tries == 0 {
			wait()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("deps: lock %s: %w", path, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
