module github.com/unfray/unfray/bench

go 1.26.0

require github.com/unfray/unfray v0.0.0

require (
	github.com/ebitengine/purego v0.10.0 // indirect
	github.com/hybridgroup/yzma v1.28.0 // indirect
	github.com/jupiterrider/ffi v0.7.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/unfray/unfray => ../
