// Package servertest starts real inference servers for tests: llama.cpp's own and vLLM.
//
//   - A server is ready when its function returns, and listens on a free port of the loopback interface.
//   - It ends with the test, or for a shared one with the test binary, also when that is killed.
//   - Its log is shown where a test fails.
//   - Where a server or the model is not on this machine the test skips and says what to do. With [EnvRequire] set to 1
//     it fails instead.
//
// Only tests whose names hold the word Conformance start servers: `make conformance` finds them by it.
package servertest

// The environment variables that the package reads. `make conformance` and `make test-servers` set them.
const (
	EnvModel       = "UNFRAY_TEST_MODEL"        // GGUF file for llama.cpp; default the fetched model
	EnvLlamaServer = "UNFRAY_TEST_LLAMA_SERVER" // folder of llama.cpp's server for PYTHONPATH; default the fetched one; "none" skips
	EnvVLLM        = "UNFRAY_TEST_VLLM"         // folder that scripts/vllm-install.sh made; without it tests of vLLM skip
	EnvRequire     = "UNFRAY_TEST_REQUIRE"      // 1: fail where a test would skip for want of llama.cpp's server or its model
)
