module github.com/unfray/unfray/bench

go 1.26.0

require (
	github.com/eliben/go-sentencepiece v0.6.0
	github.com/pkoukk/tiktoken-go v0.1.8
	github.com/tiktoken-go/tokenizer v0.10.0
	github.com/unfray/unfray v0.0.0
)

require (
	github.com/dlclark/regexp2 v1.12.0 // indirect
	github.com/dlclark/regexp2/v2 v2.5.1 // indirect
	github.com/ebitengine/purego v0.10.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hybridgroup/yzma v1.28.0 // indirect
	github.com/jupiterrider/ffi v0.7.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)

replace github.com/unfray/unfray => ../
