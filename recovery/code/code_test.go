package code

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

// whole are texts whose structure is in order, however much some of it looks as if it
// were not.
var whole = []struct{ lang, src string }{
	{"go", "package p\n\nfunc f() string { return \"{[(\" + `\n\"(` + string('{') /* } */ } // ]\n"},
	{"go", "func f(a []int) map[string]int {\n\treturn map[string]int{\"}\": 1, \"\\\"\": 2}\n}\n"},
	{"go", "x := f(1)\nif x > 2 {\n\treturn '\\''\n}\n"},
	{"go", "a.b(c)[1:2]"},
	{"go", "// only a comment {\n"},
	{"go", ""},
	{"python", "def f(a, b=(1, 2)):\n    \"\"\"Doc with ( and 'quotes'.\"\"\"\n    return {'a': '[', \"b\": \"it's\"}[a]  # (\n"},
	{"python", "x = f\"{d['a']} {y!r:>{width}} {{}} {f'{z}'}\"\ny = rb'\\''\nz = r\"\\\"\"\n"},
	{"python", "s = f\"{'a' if b else \"c\"}:{t:%H:%M}\"\n"},
	{"python", "if a and \\\n        b:\n    pass\nelif c: pass\nelse:\n\n    # comment\n  # odd comment\n    x = [\n1,\n  2]\n"},
	{"python", "    x = 1\n    if x:\n        y = '''\nno: indent\n  '''\n"},
	{"python", "d = {\n    'a': lambda x: x,\n}\nfor i in d: print(i)\n"},
	{"python", "try:\n\tx = 1\nexcept (A, B):\n\tpass\nclass C: ...\n@dec\ndef g() -> 'T': return None\n"},
	{"javascript", "const re = /[/'\"]\\/(/g, x = a / b / c; if (x) /\\)/.test(y); // '\n"},
	{"javascript", "let s = `a ${b ? `${c}` : '}'} \\` {`; const o = {a: [1, 2], 'b}': /}/};\n"},
	{"javascript", "return a++ / 2 + (b) / 3 + c[0] / 4; /* ` */"},
	{"javascript", "foo(function () { return /'/ }).then(() => ({a: \"don't\"}))\n"},
	{"jsx", "const A = () => (\n  <ul>{items.map(i => <li key={i} {...i}>{i.name}<br /></li>)}</ul>\n);\n"},
	{"typescript", "type A<T> = { [k in keyof T]?: T[k] };\nconst f = <T,>(x: T): x is T => true;\nlet s: 'a' | \"b\" = 'a';\n"},
	{"java", "class A { char c = '\\''; char d = '\"'; String s = \"}\\\"\"; String t = \"\"\"\n  \"x\" {\n  \"\"\"; /* ' */ }\n"},
	{"c", "#include <stdio.h>\n#define BEGIN {\n#ifdef A\nif (a) {\n#else\nif (b) {\n#endif\n}\nint x = '\\'', y = '\"'; char *s = \"{\\\n}\"; // it's\n#error Don't\n"},
	{"c", "#if 0\nIt's not code {\n#endif\nint a[] = {1, 2}; /* ( */ #define X\n"},
	{"cpp", "auto s = R\"x()\" )y\" )x\"; int n = 1'000'000; char c = 'a'; auto l = [](int a) { return a; };\n"},
	{"csharp", "var a = @\"c:\\\" + $\"{x[\"k\"]:N2} {{\" + $@\"{y}\\\"; var r = \"\"\"\n \"q\" {\n \"\"\"; char c = '{';\n#region It's\n#endregion\n"},
	{"rust", "fn f<'a>(x: &'a str) -> &'static str { let c = '{'; let d = '\\''; let s = r#\"\"{\"#; /* /* } */ */ 'outer: loop { break 'outer } \"\\\"\" }\n"},
	{"ruby", "class A < B\n  def f(x)\n    return 1 if x =~ /[\"']{/\n    %w[a b].each do |y|\n      puts \"#{y} #{\"}\"} {\"\n    end\n  end\n  def g = 1\n  def h() = puts(\"x\")\n  X = <<~EOS\n    it's \"open {\n  EOS\nend\n"},
	{"ruby", "while x do\n  y = if a then b else c end\n  break unless y\nend\n=begin\nit's {\n=end\nz = {if: 1, end: 2}\n"},
	{"php", "<p>it's</p>\n<?php\n// it's ?> it's <?php\n$a = \"x {$b[\"k\"]} {\"; $c = <<<EOT\n\"it's {\n  EOT;\n#[Attr(1)]\nfunction f() { return ['a' => '}']; }\n?>\n</b>'\n"},
	{"shell", "#!/bin/bash\nif [ \"$a\" = \"it's (\" ]; then\n  echo ${x#*(} ${#y} $((1 << 2)) $(echo \")\") `date`\nfi\ncase $x in\n  a|b) echo 'x)';;\n  (c) for i in 1 2; do echo done; done;;\n  *) :;;\nesac # it's (\n"},
	{"shell", "cat <<EOF && cat <<-'X'\nit's \"open $( \nEOF\n\t\"\n\tX\necho a\\'b {a,b} \"${x:-it's}\" $'a\\'b'\nf() { echo if; }\n"},
	{"sql", "SELECT 'it''s (', \"a\"\"(\" FROM t -- it's (\nWHERE a = $$it's ($$ AND b IN (1, 2) /* ( */;\n"},
	{"sql", "INSERT INTO t VALUES ('it\\'s ('), (\"x\");\n"},
	{"html", "<!DOCTYPE html>\n<html><head><title>a < b</title><script>if (a < b) { s = '</div>'.length }</script></head>\n<body><p>One<p>Two<br><img src=\"a>b\"><ul><li>x<li>y</ul><!-- <div> -->It's 1 < 2</body></html>\n"},
	{"xml", "<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ENTITY b \"c\">]>\n<a b='>'><c/><![CDATA[<d>]]><e:f>it's</e:f></a>\n"},
	{"css", "a::before { content: \"}\\\"\"; background: url(data:image/png;base64,a//b'c) } /* { */ @media (min-width: 1px) { b { c: d } }\n"},
	{"kotlin", "fun f() { val s = \"${x[\"k\"]} $y {\"; val t = \"\"\"a \"b\" { \\\"\"\"\"; val c = '\\''; /* /* { */ */ }\n"},
	{"swift", "func f() { let s = \"\\(g(\"x)\")) {\"; let t = #\"\\\" {\"#; let u = \"\"\"\n \" {\n \"\"\" }\n"},
	{"lua", "--[[ it's ( ]] --[==[ ]] ]==]\nlocal s = [[it's (]] .. 'a\\'b'\nfor i = 1, 2 do\n  if x then repeat y() until z else w() end\nend\nlocal t = { ['end'] = 1, f = function() return 1 end }\n"},
	{"perl", "my %h = (a => 'it', b => qw(x y)); my $r = qr{[\"']}; s/\\/{/}/g; print \"$h{a}\\n\" if $#x; # it's (\n"},
	{"r", "f <- function(x) { r\"(a\")\" ; x[[1]] %in% 'b' } # it's (\n"},
	{"dart", "void f() { var s = 'a ${b['k']} {'; var t = r'\\'; var u = '''it's {'''; }\n"},
	{"scala", "def f(x: Int) = { s\"${m(\"k\")} {\"; 'sym; '\"'; \"\"\"a\"b\"\"\" }\n"},
	{"haskell", "f' x = g' '\"' \"(\\\"\" {- ( {- ' -} -} -- it's (\nop a b = a --> b\ndata A = A { b :: [Int] }\n"},
	{"toml", "a = \"]\\\"\" # it's [\nb = '\\'\nc = \"\"\"\n\"x\" [\n\"\"\"\n[t]\nd = [1, [2]]\n"},
	{"dockerfile", "# it's\nFROM a\nRUN echo \"it's\" && \\\n  x\nCOPY <<EOF /a\n\" (\nEOF\n"},
	{"makefile", "# it's $(\na = $(shell echo ')' $(b)) # x\nall: a.o\n\techo \"it's ($$x\" ; case x in y) ;; esac\n"},
	{"json", `{"a": ["}", "\""], "b": null}`},
	{"jsonc", "{\n  // it's {\n  'a': [1, 2,], /* } */\n}\n"},
	{"yaml", "a: it's [fine\nb: |\n  \"open {\nc: [1, {d: \"e\"}] # it's\n"},
	{"yaml", "a: it's\nb: 'c''s'\nd:\n  - \"[\"\n  - e [f\n"},
}

func TestWhole(t *testing.T) {
	for _, c := range whole {
		r := Check(c.lang, []byte(c.src), Options{})
		if r.Status != Parses && c.lang != "perl" {
			t.Errorf("%s %q: %s %+v %+v", c.lang, c.src, r.Status, r.Problems, r.Open)
		}
		if edits, _ := Close(c.lang, []byte(c.src)); len(edits) > 0 {
			t.Errorf("%s %q: edits %v", c.lang, c.src, edits)
		}
	}
}

var cut = []struct{ lang, src, want string }{
	{"go", "package p\n\nfunc f() {\n\tif x {\n\t\tg(\"a", "package p\n\nfunc f() {\n\tif x {\n\t\tg(\"a\")\n\t}\n}"},
	{"go", "func f() { // said", "func f() { // said\n}"},
	{"go", "x := []int{1, 2", "x := []int{1, 2}"},
	{"go", "x := `raw\n(", "x := `raw\n(`"},
	{"go", "s := \"a\\", "s := \"a\""},
	{"go", "s := f(\"caf\xc3", "s := f(\"caf\")"},
	{"python", "s = '\xe2\x82", "s = ''"},
	{"go", "package p\n\nvar x = 1\n\n/* open", "package p\n\nvar x = 1\n\n/* open*/"},
	{"python", "def f():\n    return g([1, {'a': \"b", "def f():\n    return g([1, {'a': \"b\"}])"},
	{"python", "x = f\"{d['a", "x = f\"{d['a']}\""},
	{"python", "def f():\n    \"\"\"Doc\n    more", "def f():\n    \"\"\"Doc\n    more\"\"\""},
	{"python", "x = '''a''", "x = '''a'''"},
	{"python", "x = [\n    1,\n    2,  # two", "x = [\n    1,\n    2,  # two\n]"},
	{"javascript", "function f() {\n  return `a ${g(1", "function f() {\n  return `a ${g(1)}`\n}"},
	{"javascript", "foo(() => {\n  bar({\n    a: 1", "foo(() => {\n  bar({\n    a: 1\n  })\n})"},
	{"javascript", "x = /ab[c", "x = /ab[c]/"},
	{"java", "class A {\n  void f() {\n    g(\"x", "class A {\n  void f() {\n    g(\"x\")\n  }\n}"},
	{"c", "#ifdef A\nint f(void) {\n  return 1;", "#ifdef A\nint f(void) {\n  return 1;\n}\n#endif"},
	{"c", "int f(void) {\n  g('a", "int f(void) {\n  g('a')\n}"},
	{"cpp", "auto s = R\"x(a\nb)", "auto s = R\"x(a\nb)x\""},
	{"rust", "fn f<'a>() {\n    let s = r#\"a\"", "fn f<'a>() {\n    let s = r#\"a\"#\n}"},
	{"rust", "/* a /* b", "/* a /* b*/*/"},
	{"ruby", "class A\n  def f\n    puts \"#{x", "class A\n  def f\n    puts \"#{x}\"\n  end\nend"},
	{"shell", "if [ -f a ]; then\n  echo \"$(date", "if [ -f a ]; then\n  echo \"$(date)\"\nfi"},
	{"shell", "cat <<EOF\nhello", "cat <<EOF\nhello\nEOF\n"},
	{"shell", "for i in 1 2; do\n  case $i in\n    1) echo one ;;\n", "for i in 1 2; do\n  case $i in\n    1) echo one ;;\n  esac\ndone"},
	{"php", "<?php\nfunction f() {\n    return [1, 2", "<?php\nfunction f() {\n    return [1, 2]\n}"},
	{"sql", "SELECT a FROM t WHERE b IN ('x', 'y", "SELECT a FROM t WHERE b IN ('x', 'y')"},
	{"html", "<div>\n  <ul>\n    <li>One", "<div>\n  <ul>\n    <li>One\n  </ul>\n</div>"},
	{"html", "<p>Text <b>bold", "<p>Text <b>bold</b></p>"},
	{"xml", "<a><!-- x --", "<a><!-- x --></a>"},
	{"css", "a {\n  color: red;", "a {\n  color: red;\n}"},
	{"lua", "function f()\n  if x then\n    return {1, 2", "function f()\n  if x then\n    return {1, 2}\n  end\nend"},
	{"kotlin", "fun f() {\n    val s = \"${x", "fun f() {\n    val s = \"${x}\"\n}"},
	{"swift", "let s = \"\\(f(1", "let s = \"\\(f(1))\""},
	{"csharp", "var s = $\"{x:N", "var s = $\"{x:N}\""},
	{"dart", "main() {\n  print('a $", "main() {\n  print('a $')\n}"},
	{"toml", "a = [\n  1,", "a = [\n  1,\n]"},
	{"json", `{"a": [1, 2`, `{"a": [1]}`},
	{"jsonc", "{\n  \"a\": 1, // one", "{\n  \"a\": 1, // one\n}"},
	{"makefile", "a = $(shell echo $(b", "a = $(shell echo $(b))"},
}

func TestCut(t *testing.T) {
	for _, c := range cut {
		edits, r := Close(c.lang, []byte(c.src))
		if got := string(jsonrepair.Apply([]byte(c.src), slices.Values(edits))); got != c.want {
			t.Errorf("%s %q:\n got %q\nwant %q\n%+v", c.lang, c.src, got, c.want, r)
			continue
		}
		if r.Status != Cut || !r.Closed {
			t.Errorf("%s %q: %s, closed %v", c.lang, c.src, r.Status, r.Closed)
		}
		if again := Check(c.lang, []byte(c.want), Options{}); again.Status != Parses {
			t.Errorf("%s %q: %s", c.lang, c.want, again.Status)
		}
	}
}

// leftAlone are texts that are not whole and that nothing is closed in.
var leftAlone = []struct {
	lang, src string
	status    Status
	at        int // of the first problem
}{
	{"go", "package p\n\nfunc f() {\n}}\n", Broken, 23},
	{"go", "func f() {\n\tx := = 1\n", Broken, 17},
	{"go", "package p\nfunc f(] {}", Broken, 17},
	{"go", "var s = \"a\nb\"\n", Broken, 8},
	{"go", "x := 1 +", Cut, -1},
	{"python", "def f(:\n    x = (1]\n", Broken, 18},
	{"python", "if x:\ny = 1\n", Broken, 6},
	{"python", "x = 1\n   y = 2\n", Broken, 9},
	{"python", "if x:\n        y = 1\n    z = 2\n", Broken, 24},
	{"python", "x = 'abc\ny = 1\n", Broken, 4},
	{"python", "def f(x):", Cut, -1},
	{"python", "def f(x):\n    if x:\n", Cut, -1},
	{"javascript", "f(a]\n", Broken, 3},
	{"javascript", "s = 'a\n'\n", Broken, 4},
	{"jsx", "const A = () => (\n  <ul>{items.map(i => <li key={i}>{i.na", Unknown, -1},
	{"javascript", "return <div>Don't", Unknown, -1},
	{"rust", "fn f() { ) }", Broken, 9},
	{"shell", "if true; then\necho }\ndone\n", Broken, 19},
	{"xml", "<a><b></a>", Broken, 6},
	{"html", "<div><span></div>", Broken, 11},
	{"html", "<div><a hre", Cut, -1},
	{"html", "<div></di", Unknown, -1},
	{"lua", "if x then end end\n", Broken, 14},
	{"c", "int f() {\n#endif\n}", Broken, 10},
	{"c", "#ifdef __cplusplus\nextern \"C\" {\n#endif\nint f(void", Unknown, -1},
	{"c", "char c = '\\", Cut, -1},
	{"css", "a { b: c; }}", Broken, 11},
	{"perl", "my $x = { a => 'b", Unknown, -1},
	{"json", `{"a" 1`, Broken, 5},
	{"yaml", "a: [1, 2\nb: }\n", Broken, -2},
	{"brainfuck", "[[[", Unknown, -1},
	{"", "Just a sentence (with an open", Unknown, -1},
}

func TestLeftAlone(t *testing.T) {
	for _, c := range leftAlone {
		edits, r := Close(c.lang, []byte(c.src))
		if len(edits) > 0 && r.Status != Cut || r.Status != c.status {
			t.Errorf("%s %q: %s %v %+v", c.lang, c.src, r.Status, edits, r)
			continue
		}
		if c.at >= 0 && (len(r.Problems) == 0 || r.Problems[0].Offset != c.at) {
			t.Errorf("%s %q: problems %+v, want one at %d", c.lang, c.src, r.Problems, c.at)
		}
		if len(edits) > 0 {
			t.Errorf("%s %q: edits %v", c.lang, c.src, edits)
		}
	}
}

func TestOpen(t *testing.T) {
	r := Check("javascript", []byte("f({a: `x ${y"), Options{})
	want := []Open{{"bracket", "(", 1}, {"bracket", "{", 2}, {"string", "`", 6}, {"interpolation", "${", 9}}
	if !slices.Equal(r.Open, want) {
		t.Errorf("got %+v", r.Open)
	}
	r = Check("python", []byte("class A:\n    def f(self):  # a\n"), Options{})
	if len(r.Open) != 1 || r.Open[0].Kind != "block" || r.Open[0].Text != "def f(self):" || r.Open[0].Offset != 13 {
		t.Errorf("got %+v", r.Open)
	}
	r = Check("go", []byte("package p\n\nfunc f() {\n\n}}\n"), Options{})
	if len(r.Problems) != 1 || r.Problems[0].Line != 5 || r.Parser != "go/parser" {
		t.Errorf("got %+v", r)
	}
}

func TestLimits(t *testing.T) {
	if r := Check("go", []byte("package p\n"), Options{MaxBytes: 5}); r.Status != Unknown {
		t.Errorf("too long: %s", r.Status)
	}
	for _, lang := range []string{"go", "javascript", "json", "yaml", "python"} {
		src := bytes.Repeat([]byte("["), 100_000)
		edits, r := Close(lang, src)
		if r.Status != Unknown || len(edits) > 0 {
			t.Errorf("%s, too deep: %s", lang, r.Status)
		}
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct{ info, src, want string }{
		{"go", "", "go"}, {"Python title=\"a\"", "", "python"}, {"js", "", "javascript"}, {"c++", "", "cpp"}, {"{.rust}", "", "rust"}, {"text", "package p\nfunc f() {}\n", ""},
		{"", "#!/usr/bin/env python3\nx", "python"}, {"", "#!/bin/bash\n", "shell"}, {"", "#!/usr/bin/perl -w\n", "perl"}, {"", "#!/opt/x\n", ""},
		{"", "package main\n\nimport \"fmt\"\n", "go"}, {"", "func f(a int) error {\n\treturn nil\n}\n", "go"},
		{"", "<?php echo 1;", "php"}, {"", "<!DOCTYPE html><html>", "html"}, {"", "<?xml version=\"1.0\"?><a/>", "xml"},
		{"", "#include <stdio.h>\nint main() {}", "c"}, {"", "#include <iostream>\n", "cpp"},
		{"", "def f(x):\n    return x\n", "python"}, {"", "from os import path\n", "python"},
		{"", "const a = require('a');\n", "javascript"}, {"", "import React from 'react';\n", "javascript"}, {"", "interface A {\n  b: string;\n}\n", "typescript"},
		{"", "fn main() {\n    println!(\"x\");\n}\n", "rust"}, {"", "SELECT a, b FROM t WHERE c = 1;", "sql"}, {"", "FROM alpine\nRUN apk add x\n", "dockerfile"},
		{"", "using System;\n", "csharp"}, {"", "import java.util.List;\n", "java"}, {"", "fun main() {\n    println(1)\n}\n", "kotlin"},
		{"", `{"a": 1}`, "json"}, {"", "[1, 2]", "json"},
		{"", "Please select the items from the list.", ""}, {"", "Package delivered. Import taxes apply.", ""}, {"", "", ""}, {"", "from there to here", ""},
		{"", "He said: def is a keyword", ""}, {"", "I use std::vector and console", ""}, {"", "- a\n- b\n", ""},
	} {
		if got := Detect([]byte(c.src), c.info); got != c.want {
			t.Errorf("%q %q: got %q, want %q", c.info, c.src, got, c.want)
		}
	}
	for _, name := range Languages() {
		if canonical(name) != name || strings.ContainsAny(name, "/ ") {
			t.Errorf("%s is not its own name", name)
		}
	}
	for word, name := range aliases {
		if name != "" && languages[name] == nil {
			t.Errorf("%s stands for %s, which is not known", word, name)
		}
	}
}
