package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/unfray/unfray/jsonrepair"
)

// live repairs a document as it comes and prints what is final at once. Where it is
// interrupted or cannot read on it closes the document first.
func (r *repairFlags) live(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
	kinds := map[jsonrepair.Kind]int{}
	document := jsonrepair.NewReader(interruptible(ctx, in), r.o)
	document.OnEdit = func(e jsonrepair.Edit) { kinds[e.Kind]++ }
	buf := make([]byte, 32<<10)
	var last []byte
	var err error
	for err == nil {
		var n int
		if n, err = document.Read(buf); n > 0 {
			if _, err := out.Write(buf[:n]); err != nil {
				return err
			}
			last = append(last[:0], buf[n-1])
		}
	}
	if err := endLine(out, last); err != nil {
		return err
	}
	result := document.Result()
	r.tell(errOut, result, kinds)
	var broken *jsonrepair.IOError
	if errors.As(err, &broken) {
		return fmt.Errorf("reading: %w", broken.Err)
	}
	return r.judge(errOut, result)
}
