package jsonrepair_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/unfray/unfray/jsonrepair"
)

// What a model wrote around and inside its JSON goes; every change is listed.
func ExampleRepair() {
	r := jsonrepair.Repair([]byte("Here it is:\n{\"name\": \"Ada\", 'born': 1815,}"), jsonrepair.Options{})
	fmt.Println(r.Outcome)
	fmt.Printf("%s\n", r.Text)
	for e := range r.Edits() {
		fmt.Printf("byte %d: %s: %q became %q\n", e.Offset, e.Kind, e.Before, e.After)
	}
	// Output:
	// repaired
	// {"name": "Ada", "born": 1815}
	// byte 0: prose: "Here it is:\n" became ""
	// byte 28: quote: "'" became "\""
	// byte 33: quote: "'" became "\""
	// byte 40: surplus_comma: "," became ""
}

// A document that breaks off is closed, and what was open is named.
func ExampleRepair_truncated() {
	r := jsonrepair.Repair([]byte(`{"city": "Paris", "streets": ["Rue de R`), jsonrepair.Options{})
	fmt.Println(r.Outcome)
	fmt.Printf("%s\n", r.Text)
	for _, open := range r.Open {
		fmt.Printf("%s %q from byte %d on\n", open.Kind, open.Path, open.Offset)
	}
	// Output:
	// truncated
	// {"city": "Paris", "streets": ["Rue de R"]}
	// object "" from byte 0 on
	// array "/streets" from byte 29 on
	// string "/streets/0" from byte 30 on
}

// What a stream commits is never taken back: pieces can be sent on as they come.
func ExampleStream() {
	s := jsonrepair.NewStream(jsonrepair.Options{})
	for _, chunk := range []string{`{'city': "Par`, `is", "popu`, `lation": 2_1`, `00_000}`} {
		if _, err := s.Write([]byte(chunk)); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", s.Committed())
	}
	r := s.Close()
	fmt.Printf("%s\n%s\n", s.Committed(), r.Outcome)
	// Output:
	// {"city": "Par
	// is
	// "
	// , "population": 2100000
	// }
	// repaired
}

// Parts of a document are there as soon as they are complete.
func ExampleView() {
	s := jsonrepair.NewStream(jsonrepair.Options{})
	v := s.View()
	show := func() {
		for e := range v.Events() {
			switch {
			case e.Kind == jsonrepair.StringPart:
				fmt.Printf("%s: …%s…\n", e.Path, e.Text())
			case e.Complete() && e.Raw != nil:
				fmt.Printf("%s is %s\n", e.Path, e.Raw)
			case e.Kind == jsonrepair.ObjectEnd && len(e.Path) > 0:
				fmt.Printf("%s is whole\n", e.Path)
			}
		}
	}
	for _, chunk := range []string{`{"items": [{"name": "bre`, `ad", "count": 2}, {name: 'mi`, `lk', "count": 1}]}`} {
		if _, err := s.Write([]byte(chunk)); err != nil {
			log.Fatal(err)
		}
		show()
	}
	s.Close()
	show()
	// Output:
	// /items/0/name: …bre…
	// /items/0/name: …ad…
	// /items/0/name is "bread"
	// /items/0/count is 2
	// /items/0 is whole
	// /items/1/name: …mi…
	// /items/1/name: …lk…
	// /items/1/name is "milk"
	// /items/1/count is 1
	// /items/1 is whole
}

// The text so far can be completed at any time: its value only grows.
func ExampleView_Ending() {
	s := jsonrepair.NewStream(jsonrepair.Options{})
	var v jsonrepair.View
	var text []byte
	for _, chunk := range []string{`{"title": "Bre`, `ad", "sto`, `ck": 12`, `, "tags": [tru`, `e]`} {
		if _, err := s.Write([]byte(chunk)); err != nil {
			log.Fatal(err)
		}
		piece := s.Committed()
		text = append(text, piece...)
		if _, err := v.Write(piece); err != nil {
			log.Fatal(err)
		}
		for range v.Events() { // what is new
		}
		keep, closers := v.Ending()
		fmt.Printf("%s%s\n", text[:keep], closers)
	}
	// Output:
	// {"title": "Bre"}
	// {"title": "Bread"}
	// {"title": "Bread"}
	// {"title": "Bread", "stock": 12, "tags": []}
	// {"title": "Bread", "stock": 12, "tags": [true]}
}

// A value that breaks off is read, and said to do so.
func ExampleUnmarshal() {
	var order struct {
		Item  string
		Count int
		Notes []string
	}
	_, err := jsonrepair.Unmarshal([]byte(`{item: "bread", 'count': 2, "notes": ["sliced", "no se`), &order, jsonrepair.Options{})
	var partial *jsonrepair.OutcomeError
	if err != nil && !errors.As(err, &partial) {
		log.Fatal(err)
	}
	fmt.Printf("%+v\n", order)
	fmt.Println(partial.Result.Outcome)
	// Output:
	// {Item:bread Count:2 Notes:[sliced no se]}
	// truncated
}

// A document of any size is repaired on its way through.
func ExampleCopy() {
	r, err := jsonrepair.Copy(os.Stdout, strings.NewReader("[1, /* two */ 3,\n 4"), jsonrepair.Options{Ended: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("\n" + r.Outcome.String())
	// Output:
	// [1,  3,
	//  4]
	// truncated
}
