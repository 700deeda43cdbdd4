#!/usr/bin/env bash
# Runs the libFuzzer programs of a build (preset asan), side by side, and says what each did.
#   tools/fuzz.sh BUILD_FOLDER [TARGET ...]   all targets when none is given
#
# SECONDS_EACH: how long each runs (60); 0 runs the inputs that are there, each once. JOBS: how many run at a time (one per core).
# Begins with the seeds of tests/fuzz/corpus and with what earlier runs found in BUILD_FOLDER/corpus, which grows. An input
# that crashes, hangs (over 5 s), leaks or takes over 2 GB lies in BUILD_FOLDER/findings/TARGET afterwards, and its log
# beside it; exit 1 then. Such an input becomes a seed of tests/fuzz/corpus/TARGET with the change that mends it.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: tools/fuzz.sh BUILD_FOLDER [TARGET ...]}
shift
export build seconds=${SECONDS_EACH:-60}
jobs=${JOBS:-$(nproc)}

if [ $# -gt 0 ]; then
  targets=("$@")
else
  mapfile -t targets < <(find "$build/fuzzers" -maxdepth 1 -name 'fuzz_*' -type f -printf '%f\n' | sed 's/^fuzz_//' | sort)
fi
if [ ${#targets[@]} = 0 ]; then
  echo "fuzz: $build/fuzzers holds no programs; make fuzz builds them" >&2
  exit 2
fi

# run_target NAME: its log goes to findings/NAME.log.
run_target() {
  local name=$1 seeds=tests/fuzz/corpus/$1 bound=-max_total_time=$seconds
  if [ "$seconds" = 0 ]; then bound=-runs=0; fi
  mkdir -p "$build/corpus/$name" "$build/findings/$name"
  UBSAN_OPTIONS=print_stacktrace=1 "$build/fuzzers/fuzz_$name" -dict=tests/fuzz/json.dict "$bound" -max_len=16384 \
    -timeout=5 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/findings/$name/" \
    "$build/corpus/$name" "$seeds" >"$build/findings/$name.log" 2>&1
  echo $? >"$build/findings/$name.code"
}
export -f run_target
printf '%s\0' "${targets[@]}" | xargs -0 -P "$jobs" -I{} bash -c 'run_target {}'

# Prints a figure of libFuzzer's last line with figures: "#1234 DONE cov: 56 ft: 78 corp: 9/10b ...".
figure() { grep -aoE "$2" "$build/findings/$1.log" | tail -n 1 | grep -oE '[0-9]+' | tail -n 1; }
failed=0
printf '%-16s %12s %10s %8s %8s   %s\n' target executions per_second edges inputs outcome
for name in "${targets[@]}"; do
  outcome=passed
  if [ "$(cat "$build/findings/$name.code")" != 0 ]; then
    outcome="FAILED: $build/findings/$name.log"
    failed=1
  fi
  printf '%-16s %12s %10s %8s %8s   %s\n' "$name" "$(figure "$name" 'number_of_executed_units: +[0-9]+')" \
    "$(figure "$name" 'average_exec_per_sec: +[0-9]+')" "$(figure "$name" 'cov: [0-9]+')" \
    "$(figure "$name" 'corp: [0-9]+')" "$outcome"
done
for name in "${targets[@]}"; do
  [ "$(cat "$build/findings/$name.code")" = 0 ] || { echo "== $name"; grep -a -m1 -A20 -E '==ERROR|==WARNING|broken promise|runtime error|terminate called' "$build/findings/$name.log"; }
done
exit "$failed"
