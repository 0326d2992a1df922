//go:build llama

package main

import "testing"

// TestConformanceCachePredictionEngine compares what is predicted of the engine in
// this process with what it reports.
func TestConformanceCachePredictionEngine(t *testing.T) {
	model := testSetting(t, "UNFRAY_TEST_MODEL")
	l := startLogServe(t, "--model", model, "--lib", testSetting(t, "UNFRAY_TEST_LIB"), "--threads", "1", "--context", "2048", "--parallel", "3")
	converse(t, l, "", 60, 1, func() {})
}
