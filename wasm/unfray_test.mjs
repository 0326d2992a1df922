// Prints what the module makes of the texts and prompts on standard input, for wasm_test.go to compare.
import { readFileSync } from 'node:fs';
import { load } from './unfray.mjs';

const { texts, tokenizer, prompts } = JSON.parse(readFileSync(0, 'utf8'));
const unfray = await load();

function stream(text) {
  const s = unfray.stream();
  const all = { text: '', edits: [], ends: [] };
  let value;
  const take = (piece) => {
    all.text += piece.text;
    all.edits.push(...piece.edits);
    all.ends.push(...piece.events.filter((e) => e.kind.endsWith('_end')).map((e) => e.path));
    return piece;
  };
  for (let i = 0; i < text.length; i += 3) {
    take(s.write(text.subarray(i, i + 3)));
    value = s.value();
  }
  all.last = value === undefined ? null : JSON.stringify(value);
  all.report = take(s.close()).report;
  try { s.write('x'); } catch (e) { all.error = e.message; }
  return all;
}

function refused(f) {
  try { f(); } catch (e) { return e.message; }
  return 'nothing';
}

const t = unfray.tokenizer(Buffer.from(tokenizer, 'base64'), 'toy.gguf');
const inputs = texts.map((text) => new Uint8Array(Buffer.from(text, 'base64')));
console.log(JSON.stringify({
  reports: inputs.map((text) => unfray.repair(text)),
  streams: inputs.map(stream),
  boundaries: prompts.map((prompt) => t.boundary(prompt, { covers: 4 })),
  strict: unfray.repair('{"a": 1,234}', { strict: true, maxBytes: 100 }).outcome,
  errors: [
    refused(() => unfray.repair('1', { sticky: true })),
    refused(() => unfray.repair('1', { maxBytes: 'x' })),
    refused(() => unfray.tokenizer(new Uint8Array([1, 2, 3]))),
    refused(() => { t.free(); t.boundary('a'); }),
    refused(() => unfray.stream({ maxBytes: 2 }).write('[1, 2]')),
  ],
}));
