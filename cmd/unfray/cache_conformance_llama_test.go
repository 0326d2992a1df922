//go:build llama

package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/unfray/unfray/internal/deps"
)

// TestConformanceCachePredictionEngine compares what is predicted of the engine in
// this process with what it reports.
func TestConformanceCachePredictionEngine(t *testing.T) {
	model := testSetting(t, "UNFRAY_TEST_MODEL")
	t.Setenv(deps.EnvLib, testSetting(t, "UNFRAY_TEST_LIB"))
	l := startLogServe(t, "--config", jsonLogConfig(t, fmt.Sprintf("models:\n- {name: m, file: %q, threads: 1, context: 2048, parallel: 3}\n", model)))
	converse(t, l, &talk{rng: rand.New(rand.NewPCG(9, 9)), head: talkHead}, 60, func() {})
}
