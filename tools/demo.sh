#!/usr/bin/env bash
# Shows the whole path on this machine: install, build, look around, fill a cache, fill it again, emit source, then tune,
# run and time on a GPU, or run on the host and check where there is none. Ends with a table of what happened.
#
#   tools/demo.sh              installs what is missing and builds build/release first
#   tools/demo.sh BUILD_FOLDER uses what is built there
#
# Everything it writes goes to BUILD_FOLDER/demo, and each run begins with an empty cache there: your own is neither used
# nor changed.
# Exits 1 when a step failed; a step that this machine cannot do is named and is no failure.
set -uo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/release}
demo=$build/demo
tune_budget=${HSTUJIT_DEMO_BUDGET:-60s}
host_rows=${HSTUJIT_DEMO_ROWS:-1536}
summary=()
not_run=()
failed=0
step=0

now() { echo "${EPOCHREALTIME/[^0-9]/}"; }  # microseconds; the decimal separator is the locale's

# record NAME OUTCOME MICROSECONDS NOTE
record() {
  summary+=("$(printf '%-28s %-8s %4d.%03d s   %s' "$1" "$2" $(($3 / 1000000)) $(($3 / 1000 % 1000)) "$4")")
}

title() {
  step=$((step + 1))
  printf '\n==== %d. %s\n' "$step" "$1"
}

# run_step NAME NOTE COMMAND...: runs it with its output shown. NOTE is what the summary says; "last line" stands for the
# command's last line. Returns the command's exit code; 3 means that the machine lacks something, and is no failure, as 1 is
# none of doctor, which says so of a machine without a GPU.
run_step() {
  local name=$1 note=$2 started code outcome=done
  shift 2
  title "$name"
  printf '$ %s\n' "$*" | sed "s|$build/bin/||"
  started=$(now)
  "$@" | tee "$demo/last.txt"
  code=${PIPESTATUS[0]}
  [ "$name $code" = "doctor 1" ] && code=0
  case $code in
    0) ;;
    3) outcome="not run"; note="this machine lacks what it needs, see above" ;;
    *) outcome=FAILED; note="exit code $code"; failed=1 ;;
  esac
  [ "$note" = "last line" ] && note=$(tail -n 1 "$demo/last.txt")
  record "$name" "$outcome" $(($(now) - started)) "$note"
  return "$code"
}

prepare() {
  if [ -n "${1:-}" ]; then
    mkdir -p "$demo"
    return
  fi
  mkdir -p "$demo"
  run_step "install" "packages and NVRTC are there" tools/install-deps.sh || exit 1
  run_step "configure" "preset release" cmake --preset release || exit 1
  run_step "build" "libraries and program, without tests" \
    cmake --build --preset release --parallel "$(nproc)" \
    --target hstujit_tool hstujit_worker hstujit_compiler hstujit_host_library || exit 1
}

on_gpu() {
  run_step "tune" "last line" "$hstujit" tune --config examples/configs/ml100k.json --budget "$tune_budget" "${cache[@]}"
  run_step "run --check, real lengths" "agrees with the float64 reference" \
    "$hstujit" run --config examples/configs/ml100k.json --check "${cache[@]}"
  run_step "tune, a whole layer" "last line" "$hstujit" tune --config examples/configs/stu_layer.json --budget "$tune_budget" "${cache[@]}"
  run_step "run --check, a whole layer" "agrees with the float64 reference" \
    "$hstujit" run --config examples/configs/stu_layer.json --check --max-rows "$host_rows" "${cache[@]}"
  run_step "bench" "beside the ceilings of this GPU" "$hstujit" bench --grid bench/grid.json "${cache[@]}" --out "$demo/bench.json"
}

on_host() {
  run_step "run --check, real lengths" "the first $((host_rows * 16)) rows of the batch" \
    "$hstujit" run --config examples/configs/ml100k.json --backend host --check --max-rows $((host_rows * 16))
  run_step "run --check, model's shapes" "the first $host_rows rows of each batch" \
    "$hstujit" run --config examples/configs/dlrm_hstu.json --backend host --check --max-rows "$host_rows"
  run_step "run --check, a whole layer" "the first $((host_rows / 3)) rows of the batch" \
    "$hstujit" run --config examples/configs/stu_layer.json --backend host --check --max-rows $((host_rows / 3))
  not_run+=("There is no usable GPU here, so no kernel was tuned, launched or timed: what ran is the compiler and the host backend.")
}

prepare "${1:-}"
hstujit=$build/bin/hstujit
if [ ! -x "$hstujit" ]; then
  echo "demo: $hstujit is not built" >&2
  exit 1
fi
rm -rf "$demo/cache" "$demo/emitted"
cache=(--cache-dir "$demo/cache")
# The wheel that install-deps.sh unpacks where there is no CUDA toolkit.
wheel=$(find "$PWD/build/nvrtc/nvidia" -maxdepth 2 -name lib -type d 2>/dev/null | head -n 1)
if [ -z "${HSTUJIT_NVRTC:-}" ] && [ -n "$wheel" ]; then export HSTUJIT_NVRTC=$wheel; fi

run_step "doctor" "what this machine has" "$hstujit" doctor "${cache[@]}"
gpu=no
grep -q '^GPU 0 .*, sm_' "$demo/last.txt" && gpu=yes
arch=()
[ "$gpu" = yes ] || arch=(--arch sm_90a)
run_step "prewarm, empty cache" "last line" "$hstujit" prewarm --config examples/configs/ml100k.json "${arch[@]}" "${cache[@]}"
run_step "prewarm again" "last line" "$hstujit" prewarm --config examples/configs/ml100k.json "${arch[@]}" "${cache[@]}"
run_step "prewarm, a whole layer" "last line" "$hstujit" prewarm --config examples/configs/stu_layer.json "${arch[@]}" "${cache[@]}"
run_step "emit" "CUDA source, IR and launcher" \
  "$hstujit" emit --config examples/configs/ml100k.json --op ml-100k-d64 "${arch[@]}" -o "$demo/emitted" "${cache[@]}"
if [ "$gpu" = yes ]; then on_gpu; else on_host; fi

printf '\n==== Summary\n'
printf '%-28s %-8s %10s   %s\n' "step" "outcome" "time" "what it says"
printf '%s\n' "${summary[@]}"
[ ${#not_run[@]} = 0 ] || printf '\n%s\n' "${not_run[@]}"
printf '\nThe command hstujit is %s; export PATH=%s:$PATH\n' "$hstujit" "$(cd "$build/bin" && pwd)"
exit "$failed"
