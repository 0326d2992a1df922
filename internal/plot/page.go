package plot

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"unicode/utf8"
)

// Page is an HTML page of sections.
type Page struct {
	Title    string
	Lead     string // a paragraph below the title
	Sections []Section
}

// Section is a part of a page: what is not empty, in the order of the fields.
type Section struct {
	Title   string
	Text    string // plain text; line ends are kept
	Code    string // text in which blanks count
	Figures []Figure
	Head    []string // of the table
	Rows    [][]string
	// Left is how many of the table's columns, from the first, hold words; the
	// others hold numbers.
	Left int
}

// The page's policy: nothing is loaded, whatever a text might have smuggled in.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"draw": func(f Figure) (template.HTML, error) {
		var b bytes.Buffer
		err := f.SVG(&b)
		return template.HTML(b.String()), err // figures escape what they are given
	},
	"short": func(text string) bool { return utf8.RuneCountInString(text) <= 40 },
}).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; --line: #d0d7de; }
@media (prefers-color-scheme: dark) { :root { --line: #30363d; } body { background: #0d1117; color: #e6edf3; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p { white-space: pre-line; }
pre { border: 1px solid var(--line); border-radius: 4px; padding: .6rem; overflow-x: auto; }
svg { max-width: 100%; height: auto; display: block; margin: 1rem 0; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .5rem; text-align: right; vertical-align: top; }
td, .short { white-space: nowrap; }
.word { text-align: left; }
.word:not(.short) { white-space: normal; min-width: 12rem; }
</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
{{with .Lead}}<p>{{.}}</p>{{end}}
{{range .Sections}}<section>
{{with .Title}}<h2>{{.}}</h2>{{end}}
{{with .Text}}<p>{{.}}</p>{{end}}
{{with .Code}}<pre>{{.}}</pre>{{end}}
{{range .Figures}}{{draw .}}{{end}}
{{if .Head}}{{$left := .Left}}<div class="table" tabindex="0" role="region" aria-label="{{.Title}}"><table>
<thead><tr>{{range $i, $h := .Head}}<th scope="col"{{if lt $i $left}} class="word"{{end}}>{{$h}}</th>{{end}}</tr></thead>
<tbody>
{{range .Rows}}<tr>{{range $i, $c := .}}<td{{if and (lt $i $left) (short $c)}} class="word short"{{else if lt $i $left}} class="word"{{end}}>{{$c}}</td>{{end}}</tr>
{{end}}</tbody></table></div>{{end}}
</section>
{{end}}</main>
</body>
</html>
`))

// HTML writes the page.
func (p *Page) HTML(w io.Writer) error {
	if err := page.Execute(w, p); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}
