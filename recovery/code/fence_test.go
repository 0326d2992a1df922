package code

import (
	"slices"
	"testing"

	"github.com/unfray/unfray/jsonrepair"
)

func TestCloseFence(t *testing.T) {
	for _, c := range []struct{ text, after string }{
		{"```js\nfoo(", "\n```"},
		{"```js\nfoo()\n", "```"},
		{"````md\n```\nx\n```\n", "````"},
		{"~~~\n```\n", "~~~"},
		{"Text\n\n```", "\n```"},
		{"```py", "\n```"},
		{"```\na\n```\n\n```\nb", "\n```"},
		{"  ```\n  a", "\n  ```"},
		{"> ```\n> a", "\n> ```"},
		{"> > ```\n> > a\n", "> > ```"},
		{"- item\n\n  ```go\n  x := 1", "\n  ```"},
		{"- ```go\n  x := 1", "\n  ```"},
		{"1. Do this:\n   ```sh\n   ls\n", "   ```"},
		{"10. a\n    ```\n    b", "\n    ```"},
		{"1. a\n   - b\n     ```\n     c", "\n     ```"},
		{"```js\nfoo()\n``", "`"},
		{"```js\nfoo()\n`", "``"},
		{"```py\ns = '''\n    ```\n", "```"},
		{"```\r\na\r\n", "```"},
		{"```\n``` x\n", "```"},
		{"```\n> ```\n", "```"},
		{"> ```\n> a\n> ", "```"},
	} {
		edits, ok := CloseFence([]byte(c.text))
		if !ok || len(edits) != 1 || edits[0].After != c.after || edits[0].Offset != len(c.text) || edits[0].Before != "" {
			t.Errorf("%q: got %+v, want %q", c.text, edits, c.after)
			continue
		}
		closed := jsonrepair.Apply([]byte(c.text), slices.Values(edits))
		if again, ok := CloseFence(closed); ok {
			t.Errorf("%q is still open: %+v", closed, again)
		}
	}
}

func TestCloseFenceLeftAlone(t *testing.T) {
	for _, text := range []string{
		"", "text", "```\na\n```", "```\na\n```\n", "```\na\n````\ntext", "~~~\n```\n~~~\n",
		"Use ``` in text", "``` a ``` b", "`code`", "``\nx", "    ```\n    indented code\n",
		"a\n\n    ```\n", "> ```\n> a\n\nout of the quotation", "> ```\n> a\n> ```\n",
		"- a\n  ```\n  b\n  ```\n", "1. a\n   ```\n   b\n```\ntext", "1. a\n\n```\nb\n```\n",
		"````\n```\n````", "**bold", "[link](", "```\n\n```", "> ```\n> a\n```\n",
		"- ```\n  a\n  ```\n- ```\n  b\n  ```",
	} {
		if edits, ok := CloseFence([]byte(text)); ok || len(edits) > 0 {
			t.Errorf("%q: got %+v", text, edits)
		}
	}
}
