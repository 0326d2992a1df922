module github.com/unfray/unfray/bench

go 1.26.4

require (
	github.com/bytedance/sonic v1.15.5
	github.com/eliben/go-sentencepiece v0.6.0
	github.com/go-json-experiment/json v1.27.2
	github.com/goccy/go-json v0.12.0
	github.com/kaptinlin/jsonrepair v0.4.8
	github.com/klauspost/compress v1.20.4
	github.com/minio/simdjson-go v0.4.5
	github.com/pkoukk/tiktoken-go v0.1.8
	github.com/segmentio/encoding v0.5.4
	github.com/tidwall/gjson v1.20.3
	github.com/tiktoken-go/tokenizer v0.10.0
	github.com/unfray/unfray v0.0.0
	github.com/valyala/fastjson v1.6.10
)

require (
	github.com/bytedance/gopkg v0.1.3 // indirect
	github.com/bytedance/sonic/loader v0.5.3 // indirect
	github.com/cloudwego/base64x v0.1.6 // indirect
	github.com/dlclark/regexp2 v1.12.0 // indirect
	github.com/dlclark/regexp2/v2 v2.5.1 // indirect
	github.com/ebitengine/purego v0.10.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hybridgroup/yzma v1.28.0 // indirect
	github.com/jupiterrider/ffi v0.7.0 // indirect
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.3.0 // indirect
	github.com/twitchyliquid64/golang-asm v0.15.1 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	golang.org/x/arch v0.0.0-20210923205945-b76863e36670 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/unfray/unfray => ../
