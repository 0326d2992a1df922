module github.com/unfray/unfray/bench

go 1.26.0

require github.com/unfray/unfray v0.0.0

replace github.com/unfray/unfray => ../
