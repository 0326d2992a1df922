// Package chattemplate turns conversations into prompts by a model's chat
// template, a program in the language Jinja, as Hugging Face's transformers
// does.
//
//   - [Template] renders a [Conversation] to text, within limits of size and
//     time: a template is part of a model's file, so it is trusted not to run
//     for ever, but not relied on. What it builds on the way is not limited: a
//     template can take all memory, so take it from whom you take the model.
//   - Renderings are those of transformers byte for byte, where transformers
//     renders. Some of what it refuses is rendered here: an attribute of something
//     undefined is undefined, text and another value can be added, and a template
//     can change lists.
//   - [Chat] renders and tokenizes. Control tokens come from the template only:
//     what a message spells stays text.
package chattemplate
