// JSON repair and prompt boundaries in WebAssembly, for browsers and Node:
//   const unfray = await load();
//   unfray.repair('{a: 1,}').value
import './wasm_exec.js';

const bytes = (text) => (typeof text === 'string' ? new TextEncoder().encode(text) : new Uint8Array(text));
const checked = (v) => { if (v instanceof Error) throw v; return v; };
const parsed = (v) => JSON.parse(checked(v));

// load starts the module: unfray.wasm beside this file, or what source holds as bytes or names as a URL.
export async function load(source = new URL('unfray.wasm', import.meta.url)) {
  const go = new globalThis.Go();
  if (typeof source === 'string' || source instanceof URL) {
    const local = String(source).startsWith('file:');
    source = local ? await (await import('node:fs/promises')).readFile(source) : await (await fetch(source)).arrayBuffer();
  }
  const { instance } = await WebAssembly.instantiate(source, go.importObject);
  let wasm;
  globalThis.unfrayReady = (functions) => { wasm = functions; };
  go.run(instance); // up to the module's main loop, at once
  delete globalThis.unfrayReady;
  return {
    // repair returns the report of one document, a string or Uint8Array.
    repair: (text, options) => parsed(wasm.repair(bytes(text), options)),
    // stream repairs a document that comes in pieces: each gives {text, events, edits}, the last a report too.
    // value returns what there is so far, of several documents the last.
    stream(options) {
      const id = checked(wasm.streamOpen(options));
      return {
        write: (piece) => parsed(wasm.streamWrite(id, bytes(piece))),
        value: () => { const text = checked(wasm.streamPartial(id)); return text === null ? undefined : JSON.parse(text); },
        close: () => parsed(wasm.streamClose(id)),
      };
    },
    // tokenizer reads the bytes of a tokenizer.json, rank file, .model or .gguf; free it when done.
    tokenizer(file, name = '') {
      if (!wasm.tokenizerOpen) throw new Error('repair.wasm has no tokenizers: load unfray.wasm');
      const id = checked(wasm.tokenizerOpen(bytes(file), name));
      return {
        boundary: (text, { special = false, covers = 16 } = {}) => parsed(wasm.boundary(id, bytes(text), special, covers)),
        free: () => checked(wasm.tokenizerFree(id)),
      };
    },
  };
}
