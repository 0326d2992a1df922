//go:build !unix

package deps

import "context"

// lock does nothing where the system has no advisory file locks in package syscall: two fetches at once then download
// twice, and the second rename replaces equal files.
func lock(context.Context, string, func()) (unlock func(), err error) {
	return func() {}, nil
}
