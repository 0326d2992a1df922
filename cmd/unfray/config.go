package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/internal/config"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check the gateway's configuration file",
		Example: `  unfray config check unfray.yaml
  unfray config schema > unfray.schema.json`,
	}
	cmd.RunE = handler(func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usageError(fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath()))
		}
		return cmd.Help()
	})
	cmd.AddCommand(newConfigCheck(), newConfigSchema())
	return cmd
}

// configView is the outcome of a check as JSON.
type configView struct {
	OK       bool            `json:"ok"`
	Errors   []*config.Error `json:"errors"`
	Warnings []*config.Error `json:"warnings"`
}

func newConfigCheck() *cobra.Command {
	var r config.Reader
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Report every mistake of a configuration file, with its place",
		Long: `Report every mistake of a configuration file, with its place, and show what the
file sets up. The environment variables and the files that it names have to be
there. Keys are never shown.

A line is FILE:LINE:COLUMN: PATH: MESSAGE. The exit status is 1 if there are
mistakes; warnings do not change it unless --strict asks for it.`,
		Example: `  unfray config check unfray.yaml
  unfray config check --no-env --no-files deploy/unfray.yaml`,
		Args: cobra.ExactArgs(1),
	}
	f := cmd.Flags()
	f.BoolVar(&r.SkipEnv, "no-env", false, "leave ${NAME} alone: the variables may be missing")
	f.BoolVar(&r.SkipFiles, "no-files", false, "leave the files alone that the file names: they may be missing")
	f.BoolVar(&asJSON, "json", false, "print mistakes and warnings as JSON")
	f.BoolVar(&strict, "strict", false, "exit with 1 if there are warnings")
	cmd.RunE = handler(func(cmd *cobra.Command, args []string) error {
		cfg, err := r.Load(args[0])
		var mistakes config.Errors
		if err != nil && !errors.As(err, &mistakes) {
			return err
		}
		if asJSON {
			view := configView{OK: err == nil, Errors: []*config.Error{}, Warnings: []*config.Error{}}
			view.Errors = append(view.Errors, mistakes...)
			if cfg != nil {
				view.Warnings = append(view.Warnings, cfg.Warnings...)
			}
			if err := writeJSON(cmd.OutOrStdout(), view); err != nil {
				return err
			}
		}
		return reportConfig(cmd, args[0], cfg, mistakes, asJSON, strict)
	})
	return cmd
}

// reportConfig writes what was found, and gives the error that it comes to.
func reportConfig(cmd *cobra.Command, name string, cfg *config.Config, mistakes config.Errors, quiet, strict bool) error {
	if len(mistakes) > 0 {
		if quiet {
			return fmt.Errorf("%s cannot be used", name)
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), mistakes); err != nil {
			return err
		}
		return fmt.Errorf("%s cannot be used", name)
	}
	if !quiet {
		for _, w := range cfg.Warnings {
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%v (warning)\n", w); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: ok\n%v", name, cfg); err != nil {
			return err
		}
	}
	if strict && len(cfg.Warnings) > 0 {
		return fmt.Errorf("%s, and --strict allows none", counted(len(cfg.Warnings), "warning"))
	}
	return nil
}

func newConfigSchema() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of configuration files, for editors",
		Example: `  unfray config schema > unfray.schema.json
  # then, as the first line of the file:
  # yaml-language-server: $schema=unfray.schema.json`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = handler(func(cmd *cobra.Command, _ []string) error {
		_, err := cmd.OutOrStdout().Write(config.Schema())
		return err
	})
	return cmd
}
