package main

import (
	"encoding/json"

	"github.com/bytedance/sonic"
	"github.com/go-json-experiment/json/jsontext"
	goccy "github.com/goccy/go-json"
	"github.com/minio/simdjson-go"
	segmentio "github.com/segmentio/encoding/json"
	"github.com/tidwall/gjson"
	"github.com/valyala/fastjson"

	"github.com/unfray/unfray/jsonrepair"
)

type contestant struct {
	name  string
	valid func([]byte) bool
}

var (
	ours     = contestant{"unfray", func(data []byte) bool { return jsonrepair.Check(data, 0) == nil }}
	standard = contestant{"encoding/json", json.Valid}
)

// peers are the modules of the others.
var peers = []string{
	"github.com/bytedance/sonic", "github.com/go-json-experiment/json", "github.com/goccy/go-json", "github.com/minio/simdjson-go",
	"github.com/segmentio/encoding", "github.com/tidwall/gjson", "github.com/valyala/fastjson",
}

func allContestants() []contestant {
	var parsed *simdjson.ParsedJson // its memory is used again, as its users do
	return []contestant{
		{"goccy", goccy.Valid},
		{"sonic", sonic.Valid},
		{"fastjson", func(data []byte) bool { return fastjson.ValidateBytes(data) == nil }},
		{"gjson", gjson.ValidBytes},
		{"segmentio", segmentio.Valid},
		{"jsontext", func(data []byte) bool { return jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true)) }},
		{"simdjson-go", func(data []byte) bool { // has no validator: it parses
			if !simdjson.SupportedCPU() {
				return false
			}
			p, err := simdjson.Parse(data, parsed)
			if err == nil {
				parsed = p
			}
			return err == nil
		}},
	}
}
