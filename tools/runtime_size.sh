#!/usr/bin/env bash
# Install the runtime alone (no extras, no torch, no pip of its own) into a fresh venv and print what it weighs.
# Byte code is not compiled: Python adds about 20 MB of it as modules are used. The embedded voice counts for itself.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-$(command -v python3.11 || command -v python3)}"
venv="${1:-build/runtime-venv}"
rm -rf "$venv"
"$python" -m venv --without-pip "$venv"
"$python" -m pip --python "$venv/bin/python" --disable-pip-version-check install -q --no-compile -c constraints.txt .
"$venv/bin/python" -c 'import importlib.util as u, sys; sys.exit("torch must not be a runtime dependency" if u.find_spec("torch") else 0)'
site="$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')"
echo "largest packages (MB):"
du -sm "$site"/* | sort -rn | head -8
weights=0
[ ! -d "$site/ouzel/voices/embedded" ] || weights=$(du -sk "$site/ouzel/voices/embedded" | cut -f1)
size=$(($(du -sk "$venv" | cut -f1) - weights))
echo "embedded voice: $(((weights + 1023) / 1024)) MB"
echo "runtime venv without it: $((size / 1024)).$((size % 1024 * 10 / 1024)) MB (limit 150)"
[ "$size" -lt $((150 * 1024)) ]
