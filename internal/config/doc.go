// Package config reads the gateway's configuration file: YAML with a fixed
// schema, described in docs/configuration.md.
//
//   - Every mistake of a file is reported at once, each with line, column, path
//     and what to do. A file that is no YAML has one error, where reading ended.
//   - Unknown and repeated keys are errors. Values are never guessed: a number
//     is no text, a duration has a unit.
//   - API keys come from the environment (${NAME}) or from files. No error, no
//     String, no log record and no JSON has them; errors quote no value at all.
//   - Zero values mean "the default of whoever uses it", as in the rest of the
//     module. What the file switches off is negative.
//   - Time and memory are bounded on every input: size, line length, nesting,
//     tokens and what aliases expand to.
package config
