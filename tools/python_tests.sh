#!/usr/bin/env bash
# Checks the Python package with ruff and mypy (pyproject.toml), makes the wheels of a build, installs them with
# PyTorch into an environment of their own (tools/python_environment.sh), and runs all tests there: none may be skipped
# but those that need a GPU. `make test-python` builds first.
#
#   tools/python_tests.sh BUILD                    build/release, for instance
#   tools/python_tests.sh BUILD --all              also `pip install .`, which builds
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
environment=build/python
packages=$(tools/python_environment.sh)

# One thread, as what follows up to the tests.
look_at_sources() {
  local sources=(python tests/python tests/compatibility examples)
  "$packages/bin/ruff" check "${sources[@]}" && "$packages/bin/ruff" format --check "${sources[@]}" &&
    flock "$packages/mypy.lock" "$packages/bin/mypy" --cache-dir "$packages/mypy"
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
"$environment/bin/python" -m pip --quiet --disable-pip-version-check install --no-index --no-deps "$wheels"/*.whl

# Debian's ccache has compilers by their names there. Neither the clone nor the folder of a call is part of its keys.
export PATH=/usr/lib/ccache:$PATH CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export HSTUJIT_TEST_TORCH=1 HSTUJIT_PREFIX=$build/wheel-prefix HSTUJIT_WHEELS=$wheels
export HSTUJIT_FAKE_CUDA=$build/test_libraries/libhstujit_fake_cuda.so
export HSTUJIT_FAKE_TORCH=$build/test_libraries/libhstujit_fake_torch.so
export HSTUJIT_FAKE_COMPILER=$build/test_libraries/libhstujit_fake_compiler.so
# Three processes at a time, each one thread for most of its time: the tests that take longest, and two halves of the
# others.
longest=(torch_ranker torch_operators torch_compile torch_dropout torch_native torch_stu_instances torch_stu
  torch_public_layer)
mapfile -t others < <(find tests/python -maxdepth 1 -name 'test_*.py' -printf '%f\n' | sed 's/^test_//; s/\.py$//' | sort |
  grep -vxF "$(printf '%s\n' pip "${longest[@]}")")
half=$((${#others[@]} / 2))
run() { "$environment/bin/python" tests/python/run.py "$@"; }
run "${others[@]:0:half}" >"$build/python-tests-1.log" 2>&1 &
first=$!
run "${others[@]:half}" >"$build/python-tests-2.log" 2>&1 &
second=$!
code=0
run "${longest[@]}" || code=$?
wait "$first" || code=$?
wait "$second" || code=$?
echo "==== the others"
cat "$build"/python-tests-[12].log
if [ "${2:-}" = --all ]; then
  echo "==== pip install"
  run pip || code=$?
fi
exit "$code"
