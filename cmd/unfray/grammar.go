package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/grammar"
)

// grammarFlags say what a continuation is to keep to.
type grammarFlags struct {
	grammar, schema, regex string
}

func (g *grammarFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&g.grammar, "grammar", "", "keep to the GBNF grammar in this file")
	f.StringVar(&g.schema, "json-schema", "", "keep to the JSON Schema in this file")
	f.StringVar(&g.regex, "regex", "", "keep to this regular expression")
	cmd.MarkFlagsMutuallyExclusive("grammar", "json-schema", "regex")
}

// load compiles what was given, nil if nothing was.
func (g *grammarFlags) load() (*grammar.Grammar, error) {
	if g.regex != "" {
		c, err := grammar.ParseRegex(g.regex)
		if err != nil {
			return nil, usageError(fmt.Sprintf("--regex: %v", err))
		}
		return c, nil
	}
	path, parse := g.grammar, func(b []byte) (*grammar.Grammar, error) { return grammar.ParseGBNF(string(b)) }
	if g.schema != "" {
		path, parse = g.schema, grammar.ParseJSONSchema
	}
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
