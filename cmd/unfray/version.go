package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/engine"
)

// version is set by the linker (-X main.version=…) in released builds.
var version = ""

// buildVersion is the linker's version, else the module's, else "devel".
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version and what is linked in",
		Example: "  unfray version --json",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.RunE = handler(func(cmd *cobra.Command, _ []string) error {
		v := struct {
			Version string `json:"version"`
			Go      string `json:"go"`
			OS      string `json:"os"`
			Arch    string `json:"arch"`
			Engine  bool   `json:"engine"`
		}{buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH, engine.Linked}
		if asJSON {
			return writeJSON(cmd.OutOrStdout(), v)
		}
		linked := "without the embedded engine"
		if v.Engine {
			linked = "with the embedded engine"
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "unfray %s (%s, %s/%s, %s)\n", v.Version, v.Go, v.OS, v.Arch, linked)
		return err
	})
	return cmd
}
