# The commands that people and CI use; CI runs nothing else. Needs Go, and npm and pip for the first `make deps`.

GO      ?= go
BIN     := bin/unfray
LISTEN  ?= 127.0.0.1:8080
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)

# Inputs tried for each fuzz target: make test takes FUZZCOUNT, make fuzz FUZZTIME (a count like 20000x or a time).
FUZZCOUNT ?= 2000x
FUZZTIME  ?= 1m
BENCHTIME ?= 1s

# The race detector needs a C compiler.
RACE := $(if $(shell command -v $(CC) 2>/dev/null),-race)

FETCH   := $(GO) run ./internal/deps/fetch
CLIENTS := testdata/clients
REFERENCE := testdata/reference
# Fetch what is missing and export UNFRAY_TEST_MODEL, UNFRAY_TEST_VOCABS, UNFRAY_TEST_REFERENCES and UNFRAY_TEST_FTFY;
# with the engine also UNFRAY_TEST_LIB and UNFRAY_TEST_CLIENTS.
MODELENV  := settings=$$($(FETCH) -no-engine -vocabs -references $(REFERENCE) -env) && eval "$$settings"
ENGINEENV := settings=$$($(FETCH) -clients $(CLIENTS) -vocabs -references $(REFERENCE) -env) && eval "$$settings"
# With real servers also UNFRAY_TEST_LLAMA_SERVER, and no skipping for want of it; and without servers, where packages
# run side by side or the same tests run again.
SERVERENV := settings=$$($(FETCH) -clients $(CLIENTS) -vocabs -references $(REFERENCE) -llama-server -env) && eval "$$settings" && export UNFRAY_TEST_REQUIRE=1
NOSERVERS := UNFRAY_TEST_LLAMA_SERVER=none UNFRAY_TEST_VLLM=

# Modules of their own: comparisons and test programs, whose dependencies are not the library's.
NESTED := $(patsubst %/go.mod,%,$(wildcard bench/go.mod $(CLIENTS)/go/go.mod))

.DEFAULT_GOAL := help
.PHONY: help run demo build test check test-default test-simd test-llama test-servers test-fuzz test-gemma conformance bench bench-tokenizers bench-cache bench-eval fuzz deps test-deps gemma wasm cross vuln clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: deps build ## start the gateway with a small model, show healing, stay up (LISTEN=127.0.0.1:8080)
	$(BIN) demo --stay --listen $(LISTEN)

demo: deps build ## show healing through the gateway's port and exit
	$(BIN) demo

build: ## build bin/unfray with the embedded engine (tag llama)
	CGO_ENABLED=0 $(GO) build -tags llama -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/unfray

deps: ## fetch the llama.cpp libraries and the model into the cache, once
	@$(FETCH)

test-deps: ## deps, and what the tests run against: OpenAI clients, vocabularies, corpora, reference tokenizers, llama.cpp's server
	@$(FETCH) -clients $(CLIENTS) -vocabs -references $(REFERENCE) -llama-server

gemma: ## fetch Gemma 3 270M as a second model; shows its terms of use first and asks (ACCEPT=yes accepts them)
	@$(FETCH) -gemma $(if $(filter yes,$(ACCEPT)),-accept-gemma-terms)

test: test-deps check test-default test-simd test-llama test-servers test-fuzz ## everything: static checks, all tests, fuzzing by count
	@echo '==> make test: all passed'

check: ## the static part: formatting, vet, staticcheck, builds
	@echo '==> gofmt'
	@unformatted=$$(gofmt -l .) && { test -z "$$unformatted" || { printf 'not formatted (run gofmt -w .):\n%s\n' "$$unformatted"; exit 1; }; }
	@echo '==> go vet (default, tag llama)'
	@$(GO) vet ./...
	@$(GO) vet -tags llama ./...
	@echo '==> staticcheck (default and tag llama together: unused means unused in both)'
	@printf 'default:\nllama: -tags=llama\n' | $(GO) tool staticcheck -matrix ./...
	@echo '==> build without cgo'
	@CGO_ENABLED=0 $(GO) build ./...
	@for dir in $(NESTED); do echo "==> vet and build $$dir" && $(GO) -C $$dir vet ./... && $(GO) -C $$dir build -o /dev/null ./... || exit; done

GOTEST := $(GO) test $(RACE) -timeout 15m

# Packages that shorten their tests under the race detector run them at full length too.
test-default: FULL = $(if $(RACE),$(sort $(dir $(shell grep -rlE '^//go:build race|tokenizertest\.Race' --include='*_test.go' .))))
test-default: ## tests of the default build, with the race detector
	@echo '==> $(GOTEST) ./...$(if $(RACE),, (no C compiler $(CC): without the race detector))'
	@$(MODELENV) && $(NOSERVERS) $(GOTEST) ./...
	@test -z '$(FULL)' || { echo '==> go test $(FULL)' && $(MODELENV) && $(NOSERVERS) $(GO) test -timeout 15m $(FULL); }

# The packages with a file that the experiment switches, and what rests on them.
test-simd: ## tests of the build with vector instructions (GOEXPERIMENT=simd; amd64)
	@test "$$($(GO) env GOARCH)" != amd64 || { echo '==> GOEXPERIMENT=simd go test ./tokenizer/...' && $(MODELENV) && GOEXPERIMENT=simd $(GO) test -timeout 15m ./tokenizer/...; }

# The packages with a file that the tag switches. One at a time: the native threads spin, and two models at once slow
# each other to a tenth.
test-llama: LLAMA = $(sort $(dir $(shell grep -rlE '^//go:build .*llama' --include='*.go' . | grep -v '^./bench/')))
test-llama: ## tests of the build with the embedded engine: real model, real clients
	@echo '==> $(GOTEST) -p 1 -tags llama $(LLAMA)'
	@$(ENGINEENV) && $(NOSERVERS) $(GOTEST) -p 1 -tags llama $(LLAMA)

# The packages whose tests start servers; those tests have Conformance in their names. One at a time, as above.
SERVERS = ./internal/servertest/ $(sort $(dir $(shell grep -rlE '"github.com/unfray/unfray/internal/servertest"' --include='*_test.go' . | grep -v '^./bench/')))
test-servers: ## tests with real servers: llama.cpp's
	@echo '==> $(GOTEST) -p 1 -tags llama -run Conformance $(SERVERS)'
	@$(SERVERENV) && UNFRAY_TEST_VLLM= $(GOTEST) -p 1 -tags llama -run Conformance $(SERVERS)

# Where scripts/vllm-install.sh puts vLLM: a folder of your own, or one in the cache.
VLLMDIR = $(or $(UNFRAY_TEST_VLLM),$(or $(UNFRAY_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/unfray)/vllm)
WITHVLLM = $(if $(VLLM),scripts/vllm-install.sh '$(VLLMDIR)' && export UNFRAY_TEST_VLLM='$(VLLMDIR)',export UNFRAY_TEST_VLLM=)
conformance: ## what every backend must do, on the embedded engine and llama.cpp's server, into docs/backends.md; VLLM=1 also on vLLM (7 GB, installed once)
	@$(SERVERENV) && $(WITHVLLM) && $(GO) test -json -count=1 -timeout 60m -p 1 -tags llama -run Conformance ./engine/ $(SERVERS) | $(GO) run ./backend/backendtest/capabilities -write docs/backends.md

test-gemma: ## tests with Gemma as the model; run make gemma before
	@echo '==> go test -p 1 -tags llama -run Gemma ./tokenizer ./cmd/unfray'
	@settings=$$($(FETCH) -gemma -env) && eval "$$settings" && $(GO) test -p 1 -timeout 30m -tags llama -run Gemma ./tokenizer ./cmd/unfray

test-fuzz: ## every fuzz target by count (FUZZCOUNT=2000x)
	@GO='$(GO)' scripts/fuzz.sh $(FUZZCOUNT)

fuzz: ## every fuzz target for longer (FUZZTIME=1m, or a count like 20000x)
	@GO='$(GO)' scripts/fuzz.sh $(FUZZTIME)

bench: test-deps ## benchmarks of all packages, with the engine, and of bench/
	@$(ENGINEENV) && $(GO) test -tags llama -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...
	@$(ENGINEENV) && for dir in $(patsubst %/go.mod,%,$(wildcard bench/go.mod)); do $(GO) -C $$dir test -tags llama -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./... || exit; done

bench-tokenizers: ## the tokenizers side by side with others, as Markdown; SIMD=1 with vector instructions
	@settings=$$($(FETCH) -no-engine -vocabs -references bench/tokenizers -env) && eval "$$settings" && $(if $(SIMD),GOEXPERIMENT=simd) $(GO) -C bench run ./tokenizers $(ARGS)

bench-cache: ## simulated prefix caches beside kvcache-simulator, and figures of keystrokes: DATA=FOLDER of traces, ARGS
	@settings=$$($(FETCH) -no-engine -vocabs -references bench/prefixcache -env) && eval "$$settings" && $(GO) -C bench run ./prefixcache $(ARGS) $(abspath $(or $(DATA),../shared/data))

bench-eval: deps build ## quality and cost of healing: CUTS='FILE.jsonl.gz…', ARGS for flags of "unfray eval"
	@test -n '$(CUTS)' || { echo 'give files of cuts: CUTS="a.jsonl.gz b.jsonl"; go -C bench run ./strata makes some'; exit 2; }
	@$(BIN) eval $(ARGS) $(CUTS)

wasm: ## build repair and boundary for browsers and Node into bin/wasm, and print the sizes
	@mkdir -p bin/wasm
	GOOS=js GOARCH=wasm $(GO) vet ./wasm
	GOOS=js GOARCH=wasm $(GO) build -trimpath -ldflags '-s -w' -o bin/wasm/unfray.wasm ./wasm
	GOOS=js GOARCH=wasm $(GO) build -trimpath -ldflags '-s -w' -tags repaironly -o bin/wasm/repair.wasm ./wasm
	@cp wasm/unfray.mjs "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js" bin/wasm
	@for name in unfray repair; do \
		echo "bin/wasm/$$name.wasm: $$(wc -c < bin/wasm/$$name.wasm) bytes, $$(gzip -9c bin/wasm/$$name.wasm | wc -c) with gzip" || exit; done

# A 32-bit machine, and systems that nobody develops on.
cross: ## build the default packages for other systems
	@for target in linux/386 linux/arm64 darwin/arm64 windows/amd64 js/wasm; do \
		echo "==> build $$target" && GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 $(GO) build ./... || exit; done

vuln: ## known vulnerabilities in what is linked (asks the Go vulnerability database)
	$(GO) tool govulncheck -tags llama ./...

clean: ## remove what was built here (the cache stays: see CONTRIBUTING.md)
	rm -rf bin
