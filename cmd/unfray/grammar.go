package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/unfray/unfray/backend"
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

// load compiles what was given, nil if nothing was. source is the same for servers
// that compile it themselves.
func (g *grammarFlags) load() (c *grammar.Grammar, source *backend.Grammar, err error) {
	if g.regex != "" {
		if c, err = grammar.ParseRegex(g.regex); err != nil {
			return nil, nil, usageError(fmt.Sprintf("--regex: %v", err))
		}
		return c, &backend.Grammar{Kind: backend.Regex, Source: g.regex}, nil
	}
	path, kind := g.grammar, backend.GBNF
	if g.schema != "" {
		path, kind = g.schema, backend.JSONSchema
	}
	if path == "" {
		return nil, nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	if kind == backend.GBNF {
		c, err = grammar.ParseGBNF(string(b))
	} else {
		c, err = grammar.ParseJSONSchema(b)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, &backend.Grammar{Kind: kind, Source: string(b)}, nil
}
