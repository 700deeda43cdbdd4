#!/usr/bin/env bash
# clang-tidy over the project's sources, with .clang-tidy; a warning is an error.
#   tools/lint.sh BUILD_FOLDER [FILE ...]     when no file is given: the sources that do not include MLIR,
#                                             whose headers cost clang-tidy minutes, nor belong to tests, templates or tools
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: tools/lint.sh BUILD_FOLDER [FILE ...]}
shift

# clang cannot read the precompiled header that g++ wrote; without it a file includes the same headers by itself. Nor does
# it know every warning of g++.
commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
sed -E 's/-fpch-preprocess //g; s/-include [^ "]*cmake_pch\.hxx //g; s/-Winvalid-pch //g; s/-Wno-(maybe-uninitialized|restrict|stringop-overflow|stringop-overread) //g' "$build/compile_commands.json" >"$commands/compile_commands.json"

if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(grep -oE '"file": "[^"]*"' "$commands/compile_commands.json" | cut -d'"' -f4 | sort -u |
                       grep -E "^$PWD/(compiler/(support|generator|expression|spec|plan|nvrtc|driver)|autotune_cache|runtime|operations|python/native)/.*\.cpp$")
fi
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 4 clang-tidy-22 --quiet -p "$commands"
echo "lint: ${#files[@]} files"
