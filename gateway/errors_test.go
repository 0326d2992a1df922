package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/unfray/unfray/internal/upstream"
)

// An upstream is not blamed for a request that was ended here.
func TestServerErrors(t *testing.T) {
	at := func(cause error) error {
		return fmt.Errorf("backend: %w", &upstream.Error{Endpoint: "http://10.0.0.1", Phase: upstream.PhaseHeaders, Err: cause})
	}
	for _, row := range []struct {
		err    error
		status int
		code   string
	}{
		{at(errTimeout), 504, "timeout"},
		{at(errDraining), 503, "draining"},
		{at(context.Canceled), 499, "client_closed_request"},
		{at(os.ErrDeadlineExceeded), 504, "upstream_timeout"},
		{at(context.DeadlineExceeded), 504, "upstream_timeout"},
		{at(errors.New("connection refused")), 502, "upstream_failed"},
		{context.DeadlineExceeded, 504, "timeout"},
		{errors.New("x"), 500, ""},
	} {
		if e := publicError(row.err, ""); e.status != row.status || e.code != row.code {
			t.Errorf("%v: %d %s", row.err, e.status, e.code)
		}
	}
}
