#!/usr/bin/env bash
# Checks the Python package with ruff and mypy (pyproject.toml), makes the wheels of a build, installs them with
# PyTorch into an environment of their own, and runs all tests there: none may be skipped but those that need a GPU.
# `make test-python` builds first.
#
#   tools/python_tests.sh BUILD                    build/release, for instance
#   tools/python_tests.sh BUILD --all              also `pip install .`, which builds
#   tools/python_tests.sh --environment            the environment alone, which takes no build
#
# PyPI's PyTorch is some 3 GB, which stay in build/python; TORCH is what pip is asked for.
set -euo pipefail
build=
[ "$1" = --environment ] || build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
environment=build/python
torch=${TORCH:-torch==2.11.0}

python3 -m venv "$environment" 2>/dev/null || {
  as_root=$([ "$(id -u)" = 0 ] || echo sudo)
  $as_root apt-get install -y -qq --no-install-recommends python3-venv
  python3 -m venv --clear "$environment"
}
pip() { "$environment/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
pip install "$torch" numpy ruff==0.17.6 mypy==2.4.1 auditwheel==6.8.2
if [ "${2:-}" = --all ]; then pip install scikit-build-core==1.1.2; fi
[ -n "$build" ] || exit 0

# One thread, as what follows up to the tests.
look_at_sources() {
  local sources=(python tests/python tests/compatibility examples)
  "$environment/bin/ruff" check "${sources[@]}" && "$environment/bin/ruff" format --check "${sources[@]}" &&
    "$environment/bin/mypy"
}
look_at_sources >"$build/python-sources.log" 2>&1 &
looking=$!

wheels=$build/wheels
cmake -DBUILD="$build" -DPREFIX="$build/wheel-prefix" -P tests/python/install_prefix.cmake
rm -rf "$wheels"
"$environment/bin/python" tools/wheels.py --prefix "$build/wheel-prefix" --out "$wheels"
looked=0
wait "$looking" || looked=$?
cat "$build/python-sources.log"
[ "$looked" = 0 ] || exit "$looked"
pip uninstall --yes hstujit hstujit-host
pip install --no-index --no-deps "$wheels"/*.whl

export HSTUJIT_TEST_TORCH=1 HSTUJIT_PREFIX=$build/wheel-prefix
export HSTUJIT_FAKE_CUDA=$build/test_libraries/libhstujit_fake_cuda.so
export HSTUJIT_FAKE_TORCH=$build/test_libraries/libhstujit_fake_torch.so
export HSTUJIT_FAKE_COMPILER=$build/test_libraries/libhstujit_fake_compiler.so
# Runs the tests that take longest beside all others: each process is one thread for most of its time.
longest=(torch_ranker torch_operators torch_compile torch_dropout torch_native torch_stu_instances torch_stu
  torch_public_layer)
mapfile -t others < <(find tests/python -maxdepth 1 -name 'test_*.py' -printf '%f\n' | sed 's/^test_//; s/\.py$//' | sort |
  grep -vxF "$(printf '%s\n' pip "${longest[@]}")")
run() { "$environment/bin/python" tests/python/run.py "$@"; }
beside=$build/python-tests.log
run "${others[@]}" >"$beside" 2>&1 &
process=$!
code=0
run "${longest[@]}" || code=$?
wait "$process" || code=$?
echo "==== the others"
cat "$beside"
if [ "${2:-}" = --all ]; then
  echo "==== pip install"
  run pip || code=$?
fi
exit "$code"
