#!/bin/sh
# Runs every fuzz target of the module for as long as the argument says: a time (1m) or a number of inputs (2000x).
# Targets are found by name, so that a new one cannot be forgotten.
set -eu

limit=${1:?usage: scripts/fuzz.sh LIMIT (2000x, 1m)}
go=${GO:-go}

targets=$(find . -name '*_test.go' -not -path '*/testdata/*' -not -path './bench/*' \
	-exec grep -HoE '^func Fuzz[A-Za-z0-9_]+' {} + |
	sed 's|^\(.*\)/[^/]*_test\.go:func \(.*\)|\1 \2|' | sort)
test -n "$targets" || {
	echo 'no fuzz targets found' >&2
	exit 1
}
echo "$targets" | while read -r dir name; do
	echo "==> go test -fuzz=$name -fuzztime=$limit $dir"
	# Without a bound on minimizing, interesting inputs may take a minute each.
	"$go" test -run='^$' -fuzz="^$name\$" -fuzztime="$limit" -fuzzminimizetime=20x "$dir"
done
