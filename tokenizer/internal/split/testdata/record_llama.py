"""Records how llama.cpp splits the strings of splits.json.gz.

    python record_llama.py LLAMA_CPP_SOURCE

compiles src/unicode.cpp of a llama.cpp tree with the patterns of its
src/llama-vocab.cpp and writes llama.json.gz: for each value of
tokenizer.ggml.pre the ends of the pretokens in bytes.
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent

PROGRAM = """
#include "unicode.h"
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
static const std::map<std::string, std::vector<std::string>> patterns = {
%s
};
int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        std::string text;
        for (size_t i = 0; i + 1 < line.size(); i += 2) text += (char) std::stoi(line.substr(i, 2), nullptr, 16);
        for (const auto & p : patterns) {
            if (text.empty()) {
                printf("%%s\\n", p.first.c_str());
                continue;
            }
            std::vector<std::string> pieces;
            try {
                pieces = unicode_regex_split(text, p.second%s);
            } catch (const std::exception &) {
                continue; // a pattern that this C++ library cannot do
            }
            printf("%%s", p.first.c_str());
            for (const auto & piece : pieces) {
                size_t n = 0; // spelled as byte-level tokens: a character a byte
                for (char c : piece) n += (c & 0xc0) != 0x80;
                printf(" %%zu", n);
            }
            printf("\\n");
        }
    }
}
"""


def cases(source):
    """The name of each pre-tokenizer type and the text of its patterns."""
    out = {}
    body = source[source.index("switch (vocab.get_pre_type())") :]
    for m in re.finditer(r"((?:case LLAMA_VOCAB_PRE_TYPE_\w+:\s*)+)(.*?)break;", body, re.S):
        exprs = re.search(r"regex_exprs = (\{.*?\n\s*\});", m[2], re.S)
        if exprs:
            for kind in re.findall(r"PRE_TYPE_(\w+)", m[1]):
                out[kind] = exprs[1]
    return out


def names(source):
    out = {}
    for m in re.finditer(r"if \(\s*((?:tokenizer_pre == \"[^\"]*\"\s*(?:\|\|\s*)?)+)\) \{\s*pre_type = LLAMA_VOCAB_PRE_TYPE_(\w+);", source):
        for name in re.findall(r'"([^"]*)"', m[1]):
            out[name] = m[2]
    return out


def main():
    root = pathlib.Path(sys.argv[1]) / "src"
    source = (root / "llama-vocab.cpp").read_text()
    patterns, kinds = cases(source), names(source)
    texts = json.load(gzip.open(HERE / "splits.json.gz"))["texts"]
    lists = ["{%s, %s}," % (json.dumps(kind), patterns[kind]) for kind in sorted(set(kinds.values())) if kind in patterns]
    flag = ", true" if "bool byte_encode" in (root / "unicode.h").read_text() else ""
    with tempfile.TemporaryDirectory() as tmp:
        program = pathlib.Path(tmp) / "main.cpp"
        program.write_text(PROGRAM % ("\n".join(lists), flag))
        files = [str(program)] + [str(root / f) for f in ("unicode.cpp", "unicode-data.cpp")]
        subprocess.run(["g++", "-O1", "-std=c++17", "-I", str(root), "-o", tmp + "/main"] + files, check=True)
        hexed = "".join(t.encode().hex() + "\n" for t in texts)
        output = subprocess.run([tmp + "/main"], input=hexed, capture_output=True, text=True, check=True).stdout
    ends = {}
    for line in output.splitlines():
        kind, *sizes = line.split(" ")
        at, row = 0, []
        for size in sizes:
            at += int(size)
            row.append(at)
        ends.setdefault(kind, []).append(row)
    ends = {kind: rows for kind, rows in ends.items() if len(rows) == len(texts)}
    data = json.dumps({"kinds": kinds, "ends": ends}, separators=(",", ":"))
    with gzip.GzipFile(HERE / "llama.json.gz", "wb", 9, mtime=0) as f:
        f.write(data.encode())


if __name__ == "__main__":
    main()
