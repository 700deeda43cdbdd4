#!/usr/bin/env bash
# Makes build/python, the environment in which tools/python_tests.sh runs: PyTorch and what looks at sources, from PyPI.
#
# These packages have 5 GB, and pip takes 80 s of CPU to install them. So they stay where tests keep results between
# runs (tests/kept.py), named by what pip was asked for and by the interpreter, and all clones use them there: what
# PyTorch compiles has the folder in its options. What no run has used for a month goes. TORCH is what pip is asked for.
# Prints the folder that has the packages.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=build/python
wanted=("${TORCH:-torch==2.11.0}" numpy ruff==0.17.6 mypy==2.4.1 auditwheel==6.8.2 scikit-build-core==1.1.2)

python3 -c 'import ensurepip, venv' 2>/dev/null || {
  as_root=$([ "$(id -u)" = 0 ] || echo sudo)
  $as_root apt-get install -y -qq --no-install-recommends python3-venv >&2
}
kept=$(cd tests && python3 -c 'import kept; print(kept.kept_folder("python") or "")')
kept=${kept:-$PWD/build/python-packages}
interpreter=$(python3 -c 'import sys; print(sys.version, sys.base_prefix)')
packages=$kept/$(printf '%s\n' "$interpreter" "${wanted[@]}" | sha256sum | cut -c 1-16)

mkdir -p "$kept"
(
  flock 9  # another clone may be at it
  if [ ! -e "$packages/complete" ]; then
    python3 -m venv --clear "$packages"
    "$packages/bin/python" -m pip --quiet --disable-pip-version-check install "${wanted[@]}" >&2
  fi
  touch "$packages/complete" "$packages"
  find "$kept" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +
) 9>"$packages.lock"

python3 -m venv --clear --without-pip "$environment"
site=$(cd "$environment"/lib/python3*/site-packages && pwd)
of_packages=$(cd "$packages"/lib/python3*/site-packages && pwd)
echo "$of_packages" >"$site/packages.pth"
ln -s "$of_packages/nvidia" "$site"  # beside hstujit, where it looks for NVRTC's wheel
echo "$packages"
