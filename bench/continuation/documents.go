package main

import "fmt"

// document is a question whose answer is cut and continued.
type document struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"` // json, list, prose, code
	Question string `json:"question"`
}

var topics = []string{
	"a bicycle", "the city of Lisbon", "a public library", "bread", "the planet Mars",
	"a coffee machine", "an airport", "the violin", "a weather station", "green tea",
	"a chess club", "the river Nile", "a bakery", "solar panels", "a train ticket",
	"honey bees", "a hospital", "the piano", "a football team", "winter clothes",
	"a garden", "the Roman Empire", "a mobile phone", "a wooden table", "the human heart",
}

var tasks = []string{
	"reverses a string", "adds up the even numbers of a list", "checks whether a number is prime", "counts the words of a text", "sorts a list of numbers",
	"finds the largest number", "computes the factorial of a number", "merges two dictionaries", "removes duplicates from a list", "checks whether a word is a palindrome",
	"converts Celsius to Fahrenheit", "reads a file line by line", "computes Fibonacci numbers", "flattens a nested list", "counts vowels",
	"finds an element by binary search", "transposes a matrix", "validates an email address", "computes the average", "splits a list into chunks",
	"writes a CSV file", "computes the greatest common divisor", "rotates a list", "formats a date", "groups words by their first letter",
}

// documents are one hundred questions, a quarter of each kind.
func documents() []document {
	var all []document
	add := func(kind, format, about string) {
		all = append(all, document{fmt.Sprintf("%s-%02d", kind, len(all)/4), kind, fmt.Sprintf(format, about)})
	}
	for i, topic := range topics {
		add("json", `Describe %s as one JSON object with the fields "name", "description", "properties" (an array of objects with "key" and "value") and "tags" (an array of strings). Answer with JSON only.`, topic)
		add("list", "Write a numbered list of ten facts about %s, each in one sentence.", topic)
		add("prose", "Write three paragraphs about %s.", topic)
		add("code", "Write a Python function that %s, with comments, and an example of its use.", tasks[i])
	}
	return all
}
