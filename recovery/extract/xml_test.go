package extract

import (
	"strings"
	"testing"
)

// xmlCases are answers, the JSON they are and the name of the root; "" where XML
// refuses them.
var xmlCases = []struct{ name, in, want, root string }{
	{"elements", "<name>Ann</name><age>3</age>", `{"name":"Ann","age":"3"}`, ""},
	{"lines", "<name>\n  Ann\n</name>\n<age>3</age>\n", `{"name":"Ann","age":"3"}`, ""},
	{"root", "<person><name>Ann</name><age>3</age></person>", `{"name":"Ann","age":"3"}`, "person"},
	{"one element", "<answer>4</answer>", `{"answer":"4"}`, ""},
	{"head", "<?xml version=\"1.0\"?>\n<!-- x -->\n<r><a>1</a></r>", `{"a":"1"}`, "r"},
	{"fence", "Here:\n```xml\n<r><a>1</a></r>\n```\nOK.", `{"a":"1"}`, "r"},
	{"prose around", "Here it is:\n<r>\n<a>1</a>\n</r>\nHope this helps!", `{"a":"1"}`, "r"},
	{"behind reasoning", "<think>x</think>\n<name>Ann</name>\n<age>3</age>", `{"name":"Ann","age":"3"}`, ""},
	{"reasoning that was asked for", "<reasoning>x</reasoning><score>3</score>", `{"reasoning":"x","score":"3"}`, ""},
	{"answer behind reasoning", "<think>x</think>\n<answer>\n<a>1</a><b>2</b>\n</answer>", `{"a":"1","b":"2"}`, "answer"},
	{"one answer behind reasoning", "<think>x</think>\n<answer>4</answer>", `{"answer":"4"}`, ""},
	{"attributes", "<r id=\"1\" x='y'><a k=\"v\">t</a></r>", `{"id":"1","x":"y","a":{"k":"v","#text":"t"}}`, "r"},
	{"attribute named as a child", "<r a=\"1\"><a>2</a></r>", `{"@a":"1","a":"2"}`, "r"},
	{"only attributes", "<r><p x=\"1\" y=\"2\"/></r>", `{"p":{"x":"1","y":"2"}}`, "r"},
	{"repeated", "<r><a>1</a><b>2</b><a>3</a></r>", `{"a":["1","3"],"b":"2"}`, "r"},
	{"list by name", "<r><tags><tag>a</tag><tag>b</tag></tags></r>", `{"tags":["a","b"]}`, "r"},
	{"list of one", "<r><categories><category>a</category></categories></r>", `{"categories":["a"]}`, "r"},
	{"items", "<r><x><item>a</item></x></r>", `{"x":["a"]}`, "r"},
	{"root of items", "<tags><tag>a</tag><tag>b</tag></tags>", `{"tags":["a","b"]}`, ""},
	{"root of items with attributes", "<tags n=\"2\"><tag>a</tag><tag>b</tag></tags>", `{"n":"2","tag":["a","b"]}`, "tags"},
	{"list of objects", "<r><items><item><a>1</a></item><item><a>2</a></item></items></r>", `{"items":[{"a":"1"},{"a":"2"}]}`, "r"},
	{"empty", "<r><a></a><b/></r>", `{"a":"","b":null}`, "r"},
	{"CDATA", "<r><a><![CDATA[ x < y && <b> ]]></a></r>", `{"a":" x < y && <b> "}`, "r"},
	{"entities", "<r><a>&lt;b&gt; &amp; &quot;&apos; &#233;&#xE9;</a></r>", `{"a":"<b> & \"' éé"}`, "r"},
	{"unknown entity", "<r><a>x&nbsp;y</a></r>", `{"a":"x&nbsp;y"}`, "r"},
	{"bare ampersand and less", "<r><a>R&D: 1 < 2 and x<3</a></r>", `{"a":"R&D: 1 < 2 and x<3"}`, "r"},
	{"names", "<first-name>Ann</first-name><ns:x_y>1</ns:x_y>", `{"first-name":"Ann","ns:x_y":"1"}`, ""},
	{"cut in text", "<r><a>1</a><b>some te", `{"a":"1","b":"some te"}`, "r"},
	{"cut in a tag", "<r><a>1</a><b", `{"a":"1"}`, "r"},
	{"cut in an attribute", "<r><a>1</a><b x=\"y", `{"a":"1"}`, "r"},
	{"cut in a closing tag", "<r><a>1</a><b>2</", `{"a":"1","b":"2"}`, "r"},
	{"cut in CDATA", "<r><b>1</b><a><![CDATA[x", `{"b":"1","a":"x"}`, "r"},
	{"a placeholder", "<package>: <short description>", ``, ""},
	{"not closed inside", "<r><a>1<b>2</b></r>", ``, ""},
	{"closed by the outer one", "<r><p><a>1</p><b>2</b></r>", `{"p":{"a":"1"},"b":"2"}`, "r"},
	{"JSON in it", "<r><a>{\"x\": 1}</a></r>", `{"a":"{\"x\": 1}"}`, "r"},

	// What is not XML of this kind.
	{"prose", "Hello there.", ``, ""},
	{"HTML in prose", "Use the <b>bold</b> tag.", ``, ""},
	{"HTML", "<p>Hello</p>", ``, ""},
	{"HTML page", "<!DOCTYPE html>\n<html><body></body></html>", ``, ""},
	{"HTML list", "Here:\n<ul>\n<li>a</li>\n</ul>", ``, ""},
	{"mixed content", "<r>a <em>b</em> c</r>", ``, ""},
	{"text behind", "<a>1</a> is it", ``, ""},
	{"text between", "<a>1</a> and <b>2</b>", ``, ""},
	{"comparison", "if a <b and c> d", ``, ""},
	{"generics", "List<String> x = new ArrayList<>();", ``, ""},
	{"closes nothing", "<a>1</b></a>", ``, ""},
	{"Markdown", "# T\n\n- <http://x.y>\n", ``, ""},
	{"JSON", `{"a":"<b>x</b>"}`, ``, ""},
	{"entity bomb", "<!DOCTYPE r [<!ENTITY a \"b\">]><r><x>&a;</x></r>", ``, ""},
	{"nothing", "", ``, ""},
	{"comment only", "<!-- a -->", ``, ""},
}

func TestXML(t *testing.T) {
	for _, c := range xmlCases {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadXML([]byte(c.in), Options{})
			checkConverted(t, []byte(c.in), got, err)
			if err == nil != (c.want != "") || err == nil && (string(got.JSON) != c.want || got.Root != c.root) {
				t.Errorf("%q\n got %s (%v)\nwant %s", c.in, jsonOf(got), err, c.want)
			}
			if cut := strings.HasPrefix(c.name, "cut"); err == nil && got.Truncated != cut {
				t.Errorf("%q: truncated is %v", c.in, got.Truncated)
			}
		})
	}
}

func TestXMLDepth(t *testing.T) {
	text := []byte(strings.Repeat("<x>", 100) + "x" + strings.Repeat("</x>", 100))
	if c, err := ReadXML(text, Options{}); err == nil || !strings.Contains(err.Error(), "MaxDepth") {
		t.Errorf("%v, %s", err, jsonOf(c))
	}
	if c, err := ReadXML(text, Options{MaxDepth: 100}); err != nil || c.Root != "x" {
		t.Errorf("%v, %s", err, jsonOf(c))
	}
}

func TestWrapped(t *testing.T) {
	c, err := ReadXML([]byte("<r><a>1</a></r>"), Options{})
	if err != nil || string(c.Wrapped()) != `{"r":{"a":"1"}}` {
		t.Errorf("%v, %s", err, c.Wrapped())
	}
}
