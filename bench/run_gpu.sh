#!/usr/bin/env bash
# Everything that is recorded from a GPU machine, in one go: one JSON file a step in the output folder; bench/README.md
# says which of them are kept. Exit 1 when a check failed.
#
#     bench/run_gpu.sh [-b BINARY_FOLDER] [-o OUTPUT_FOLDER] [-s "STEP..."]
#
# BINARY_FOLDER holds hstujit, bench_startup, test_gpu_faults and test_gpu_program (default: build/release/bin). Needs
# python3; compute-sanitizer and ncu for their steps. Without -s the steps are those of `default_steps` below:
#
#   matrix, sanitizer, backward        the correctness matrix, and compute-sanitizer; both of the backward direction
#   ping_pong ... small_ctas           both again under overrides: ping-pong, packed tiles, lists, CTAs, kernels of backward
#   deterministic                      launches of deterministic kernels, compared bitwise
#   emitted                            the programs beside emitted source
#   tune, faults, bench, profile       tuning, that of faulty candidates, the benchmark, its cells under the profiler;
#                                      "bench" beside the public operator where GENERATIVE_RECOMMENDERS is a checkout
#   cliffs, delta                      the benchmark's neighbours; attention of few rows
#   rows_matrix, rows, row_sweep       operators over rows, their widths one by one
#   sequences_matrix, sequences        those over rows of sequences
#   serving                            those of serving
#   products_matrix, products          products
#   programs, startup                  programs; start-up
#
# `other_steps` run only where -s names them:
#
#   tune_backward                      after which the benchmark's backward direction is tuned, too
#   layers, halves                     whole layers through PyTorch beside the public ones, and their halves
#   random                             instances at random
#   traffic, models                    attention on other lengths; on the shapes of public models
#   candidate_times                    what cost models are fitted to
#   ranks                              wants two GPUs and torchrun
#   compare                            times the benchmark beside the build in the folder COMPARED_WITH
#
# MATRIX_PART=I/N takes every N-th instance of all matrices, from the I-th on: the float64 reference of all of them takes
# minutes. Without it an override has a third of its matrix (0/3), and all else the whole one. What the sanitizers run is
# a small selection of its own.
# RANDOM_SECONDS (150), RANDOM_INSTANCES (as many as fit the time) and RANDOM_SEED (the time of day) are of "random"; its
# seeds are printed and recorded. RANDOM_BACKEND=host runs it without a GPU.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
default_steps="matrix sanitizer backward ping_pong packed lists ctas fused semaphore per_sequence small_ctas deterministic emitted \
tune faults bench profile cliffs delta rows_matrix rows row_sweep sequences_matrix sequences serving \
products_matrix products programs startup"
other_steps="tune_backward layers halves random traffic models candidate_times ranks compare"
binaries=$here/../build/release/bin output=$here/results steps=$default_steps
while getopts b:o:s: option; do
  case $option in
    b) binaries=$OPTARG ;;
    o) output=$OPTARG ;;
    s) steps=$OPTARG ;;
    *) exit 2 ;;
  esac
done
for name in $steps; do
  case " $default_steps $other_steps " in *" $name "*) ;; *) echo "$name is no step" >&2; exit 2 ;; esac
done
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
hstujit=$binaries/hstujit cache=$work/cache failed=0
day=$(date -u +%Y-%m-%d)
commit=${HSTUJIT_COMMIT:-$(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo unknown)}
record() { python3 "$here/record.py" --commit "$commit" --date "$day" --device "$($hstujit doctor --json --cache-dir "$cache")" "$@"; }
step() { case " $steps " in *" $1 "*) echo "== $1" ;; *) return 1 ;; esac }

matrix() { python3 "$here/../tests/gpu/make_matrix.py" "$@"; }

# CONFIG LOGS [FIELDS]: both tools over the config, under an override of these fields where there are some, to LOGS_memcheck.log and
# LOGS_racecheck.log. racecheck takes a barrier to order only the threads that arrive on it, so every lane arrives for it.
sanitize() {
  local tool fields sound=0
  for tool in memcheck racecheck; do
    fields=${3-}
    [ $tool = racecheck ] && fields+=${fields:+, }'"lanes_arrive": true'
    [ -n "$fields" ] && export HSTUJIT_OVERRIDE="{$fields}"
    $hstujit prewarm --config "$1" --cache-dir "$cache" > /dev/null 2>&1
    compute-sanitizer --tool $tool "$hstujit" run --config "$1" --check --cache-dir "$cache" > "$2_$tool.log" 2>&1 || sound=1
    unset HSTUJIT_OVERRIDE
  done
  return $sound
}

# RECORDED_AS NAME FIELDS MATRIX_OPTIONS...: matrix and sanitizers under an override of these fields, to NAME_DAY.json. An instance that it does
# not fit is refused with a sentence, which record counts apart: only the exit codes of record say what failed.
overridden() {
  local recorded_as=$1 name=$2 fields=$3
  shift 3
  matrix "$@" --part "${MATRIX_PART:-0/3}" > "$work/$name.json"
  export HSTUJIT_OVERRIDE="{$fields}"
  $hstujit prewarm --config "$work/$name.json" --cache-dir "$cache" 2> /dev/null | tail -n 1
  $hstujit run --config "$work/$name.json" --check --json --cache-dir "$cache" > "$work/$name.out" 2> "$work/log"
  unset HSTUJIT_OVERRIDE
  matrix "$@" --sanitizer > "$work/${name}_small.json"
  sanitize "$work/${name}_small.json" "$work/$name" "$fields"
  record "$recorded_as" "$work/$name.out" "$work/${name}_memcheck.log" "$work/${name}_racecheck.log" "$output/${name}_$day.json" || failed=1
}

# NAME MATRIX_OPTIONS...: those instances beside float64, to NAME_DAY.json.
agreement() {
  local name=$1
  shift
  matrix "$@" --part "${MATRIX_PART:-0/1}" > "$work/$name.json"
  $hstujit prewarm --config "$work/$name.json" --cache-dir "$cache" 2> /dev/null | tail -n 1
  $hstujit run --config "$work/$name.json" --check --json --cache-dir "$cache" > "$work/$name.out" 2> "$work/log" || failed=1
  record matrix "$work/$name.out" "$output/${name}_$day.json" || failed=1
}

# NAME MATRIX_OPTIONS...: those of the small selection under the sanitizers, to NAME_DAY.json.
sanitized() {
  local name=$1
  shift
  matrix --sanitizer "$@" > "$work/$name.json"
  sanitize "$work/$name.json" "$work/$name" || failed=1
  record sanitizer "$work/${name}_memcheck.log" "$work/${name}_racecheck.log" "$output/${name}_$day.json" || failed=1
}

if step matrix; then
  agreement matrix
fi

if step sanitizer; then
  sanitized sanitizer
fi

if step backward; then
  agreement backward_matrix --direction backward
  sanitized backward_sanitizer --direction backward
fi

# Here no choice of the cost model counts: every instance that can runs the kernel that a step asks for.
if step ping_pong; then
  overridden ping_pong ping_pong '"ping_pong": true' --kind bf16
fi

if step packed; then
  packed='"block_m": 64, "stages": 2, "consumers": 1, "schedule": "persistent", "blocks_per_sm": 1, "ping_pong": false, "split_kv": false, "pack_sequences": true'
  overridden fused packed "$packed"', "skeleton": "attention/sm90_forward", "block_n": 64' --kind bf16,fp16
  overridden fused packed_wide "$packed"', "skeleton": "attention/sm90_forward", "block_n": 128' --kind bf16,fp16
  overridden fused packed_backward "$packed"', "skeleton": "attention/sm90_backward_twopass", "block_n": 32' --direction backward --kind bf16,fp16
fi

# Lists of two CTAs on a multiprocessor, which sort 1,024 sequences.
if step lists; then
  list='"block_m": 64, "stages": 2, "consumers": 1, "schedule": "persistent", "blocks_per_sm": 2, "ping_pong": false, "split_kv": false, "pack_sequences": false'
  overridden fused list_forward "$list"', "skeleton": "attention/sm90_forward", "block_n": 64' --kind bf16,fp16
  overridden fused list_backward "$list"', "skeleton": "attention/sm90_backward_twopass", "block_n": 32' --direction backward --kind bf16,fp16
fi

# As many CTAs on a multiprocessor as registers allow: three with long masks and heads of 64, four with heads of 32.
if step ctas; then
  cta='"block_m": 64, "stages": 2, "consumers": 1, "schedule": "persistent", "ping_pong": false, "split_kv": false, "pack_sequences": false'
  overridden fused three_ctas "$cta"', "skeleton": "attention/sm90_forward", "block_n": 64, "blocks_per_sm": 3' --kind bf16,fp16 --only=-64x64
  overridden fused four_ctas "$cta"', "skeleton": "attention/sm90_forward", "block_n": 64, "blocks_per_sm": 4' --kind bf16,fp16 --only=-32x32
  overridden fused four_ctas_backward "$cta"', "skeleton": "attention/sm90_backward_twopass", "block_n": 32, "blocks_per_sm": 4' --direction backward --kind bf16,fp16 --only=-32x32
fi

fused='"skeleton": "attention/sm90_backward_fused", "block_n": 64'
fused_persistent=$fused', "block_m": 128, "stages": 3, "consumers": 2, "blocks_per_sm": 1, "schedule": "persistent"'
fused_buffers=$fused', "block_m": 128, "stages": 2, "consumers": 2, "blocks_per_sm": 1, "schedule": "persistent"'  # two of k and v
fused_narrow=$fused', "block_m": 64, "stages": 2, "consumers": 1, "blocks_per_sm": 2, "schedule": "persistent"'
semaphore=$fused', "block_m": 128, "stages": 3, "consumers": 2, "blocks_per_sm": 1, "schedule": "semaphore"'
semaphore_buffers=$fused', "block_m": 128, "stages": 2, "consumers": 2, "blocks_per_sm": 1, "schedule": "semaphore"'
per_sequence=$fused', "block_m": 128, "stages": 2, "consumers": 2, "blocks_per_sm": 1, "schedule": "per_sequence"'
per_sequence_narrow=$fused', "block_m": 64, "stages": 2, "consumers": 1, "blocks_per_sm": 2, "schedule": "per_sequence"'
if step fused; then
  overridden fused fused_persistent "$fused_persistent" --direction backward --kind bf16,fp16
  overridden fused fused_buffers "$fused_buffers" --direction backward --kind bf16,fp16
  overridden fused fused_narrow "$fused_narrow" --direction backward --kind bf16,fp16
fi

if step semaphore; then
  overridden fused semaphore "$semaphore" --direction backward --kind bf16,fp16
  overridden fused semaphore_buffers "$semaphore_buffers" --direction backward --kind bf16,fp16
fi

if step per_sequence; then
  overridden fused per_sequence "$per_sequence" --direction backward --kind bf16,fp16
  overridden fused per_sequence_narrow "$per_sequence_narrow" --direction backward --kind bf16,fp16
fi

# Small CTAs by mma.sync, of one warp and of two. Forward is refused where one CTA more would have as many registers.
if step small_ctas; then
  small='"stages": 2, "schedule": "per_sequence", "consumers": 0, "ping_pong": false, "split_kv": false, "pack_sequences": false'
  one_warp=$small', "block_m": 16, "block_n": 16, "warps": 1'
  two_warps=$small', "block_m": 32, "block_n": 32, "warps": 2'
  overridden fused small_ctas_forward "$one_warp"', "skeleton": "attention/sm80_forward", "blocks_per_sm": 8' --kind bf16,fp16
  overridden fused small_ctas_two_forward "$two_warps"', "skeleton": "attention/sm80_forward", "blocks_per_sm": 4' --kind bf16,fp16
  overridden fused small_ctas_backward "$one_warp"', "skeleton": "attention/sm80_backward", "blocks_per_sm": 4' --direction backward --kind bf16,fp16
  overridden fused small_ctas_two_backward "$two_warps"', "skeleton": "attention/sm80_backward", "blocks_per_sm": 2' --direction backward --kind bf16,fp16
fi

if step deterministic; then
  # Beside it a kernel that is not deterministic, which shows whether the load makes a difference at all.
  matrix --direction backward --repeated > "$work/repeated.json"
  repeat() {
    $hstujit prewarm --config "$work/repeated.json" --cache-dir "$cache" > /dev/null 2>&1
    $hstujit run --config "$work/repeated.json" --check --repeat 200 --json --cache-dir "$cache" 2> "$work/log"
  }
  HSTUJIT_DETERMINISTIC=1 repeat > "$work/deterministic.out" || failed=1
  HSTUJIT_OVERRIDE="{$semaphore_buffers}" repeat > "$work/semaphore.out" || failed=1
  HSTUJIT_OVERRIDE="{$per_sequence}" repeat > "$work/per_sequence.out" || failed=1
  HSTUJIT_OVERRIDE="{$fused_persistent}" repeat > "$work/free.out"
  record deterministic "$work/deterministic.out" "$work/free.out" "$output/deterministic_$day.json" || failed=1
  record deterministic "$work/semaphore.out" "$work/free.out" "$output/deterministic_semaphore_$day.json" || failed=1
  record deterministic "$work/per_sequence.out" "$work/free.out" "$output/deterministic_per_sequence_$day.json" || failed=1
  for direction in forward backward; do
    matrix --direction $direction --repeated-others > "$work/repeated.json"
    HSTUJIT_DETERMINISTIC=1 repeat > "$work/others.out" || failed=1
    record deterministic "$work/others.out" "$output/deterministic_others_${direction}_$day.json" || failed=1
  done
fi

if step random; then
  # Portions with a seed each, of the config and of the data; the first one has the instances that once were told wrong.
  backend=${RANDOM_BACKEND:-cuda} seed=${RANDOM_SEED:-$(date +%s)} left=${RANDOM_INSTANCES:-1000000} portions=() known=(--known)
  random_end=$((SECONDS + ${RANDOM_SECONDS:-150}))
  while ((left > 0 && SECONDS < random_end)); do
    count=$((left < 32 ? left : 32)) data_seed=$seed
    [ ${#known[@]} -gt 0 ] && count=0 data_seed=0
    portion=$work/random_${#portions[@]}
    "$here/../tests/gpu/make_random.py" --seed "$seed" --count "$count" "${known[@]}" > "$portion.json"
    [ "$backend" = cuda ] && $hstujit prewarm --config "$portion.json" --cache-dir "$work/random" > /dev/null 2>> "$work/log"
    timeout 300 "$hstujit" run --config "$portion.json" --backend "$backend" --check --seed "$data_seed" --json --cache-dir "$work/random" > "$portion.out" 2>> "$work/log"
    portions+=("$portion.json" "$portion.out")
    [ ${#known[@]} -gt 0 ] && known=() || seed=$((seed + 1))
    left=$((left - count))
  done
  record random "${portions[@]}" "$output/random_$day.json" || failed=1
fi

if step emitted; then
  # The programs beside emitted source, built and run as their first lines say: one with clusters, one with a workspace of regions.
  cat > "$work/emitted.json" << 'CONFIG'
{"version": 1, "defaults": {"heads": 4, "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 1024}, "ops": [
  {"name": "clusters", "op": "delta_hstu_attention"},
  {"name": "in_order", "op": "hstu_attention", "directions": ["backward"], "num_targets": true}]}
CONFIG
  {
    $hstujit emit --config "$work/emitted.json" --op clusters -o "$work/emitted" || failed=1
    HSTUJIT_OVERRIDE="{$semaphore}" $hstujit emit --config "$work/emitted.json" --op in_order -o "$work/emitted" || failed=1
  } > "$work/emitted.log" 2>&1
  for program in "$work"/emitted/*_main.cu; do
    build=$(sed -n 's|^// Build: ||p' "$program")
    (cd "$work/emitted" && $build && "./${build##* }" 4 1024) || echo "$(basename "$program") failed"
  done > "$work/emitted.out" 2>> "$work/emitted.log"
  record emitted "$work/emitted.out" "$output/emitted_$day.json" || { failed=1; cat "$work/emitted.log"; }
fi

if step tune; then
  for config in dlrm_hstu ml100k; do
    for run in 1 2; do
      $hstujit tune --config "$here/../examples/configs/$config.json" --budget 300s --json --cache-dir "$work/tune_$run" > "$work/tune_$run.out" 2> "$work/log" || failed=1
    done
    record tune "$work/tune_1.out" "$work/tune_2.out" "$output/tune_${config}_$day.json" || failed=1
  done
  mkdir -p "$cache" && cp -r "$work/tune_1/." "$cache"  # what follows is tuned
fi

if step tune_backward; then
  for config in dlrm_hstu ml100k; do
    sed 's|"op": "hstu_attention",|& "directions": ["backward"],|; s|"\.\./data/|"'"$here"'/../examples/data/|' "$here/../examples/configs/$config.json" > "$work/$config.json"
    $hstujit tune --config "$work/$config.json" --budget 300s --json --cache-dir "$cache" > "$work/tune.out" 2> "$work/log" || failed=1
    record tune "$work/tune.out" "$output/tune_backward_${config}_$day.json" || failed=1
  done  # what follows is tuned
fi

if step ranks; then
  cat > "$work/rank.sh" << 'RANK'
export CUDA_VISIBLE_DEVICES=$LOCAL_RANK
[ "$1" = tune ] && exec "$hstujit" tune --config "$config" --shard auto --budget 120s --json --cache-dir "$work/ranks" > "$work/rank_tune_$RANK"
export HSTUJIT_FROZEN=$work/choices.json HSTUJIT_LOG=dispatch
exec "$hstujit" run --config "$config" --check --json --cache-dir "$work/ranks_$RANK" > "$work/rank_run_$RANK" 2> "$work/rank_log_$RANK"
RANK
  export hstujit work config="$here/../examples/configs/ml100k.json"
  rank() { torchrun --standalone --nproc-per-node 2 --no-python bash "$work/rank.sh" "$1"; }
  rank tune 2> "$work/log" || failed=1
  $hstujit freeze --config "$config" -o "$work/choices.json" --cache-dir "$work/ranks" || failed=1
  rank run 2> "$work/log" || failed=1
  record ranks "$work/choices.json" "$work"/rank_{tune,log,run}_0 "$work"/rank_{tune,log,run}_1 "$output/ranks_$day.json" || failed=1
fi

# attention_peers CACHE [OPTIONS...]: the public operator beside ours; `peers` names the report where there is one.
attention_peers() {
  local tuned=$1
  shift
  peers=
  [ -n "${GENERATIVE_RECOMMENDERS:-}${FBGEMM_HSTU:-}" ] || return 0
  peers=$work/attention_peers.json
  HSTUJIT_CACHE_DIR=$tuned python3 "$here/attention_peers.py" ${GENERATIVE_RECOMMENDERS:+--generative-recommenders "$GENERATIVE_RECOMMENDERS"} \
    ${FBGEMM_HSTU:+--fbgemm "$FBGEMM_HSTU"} "$@" > "$peers" || failed=1
  [ -s "$peers" ] || peers=  # our own figures stay
}

if step bench; then
  $hstujit bench --grid "$here/grid.json" --cache-dir "$cache" --out "$work/bench.out" || failed=1
  attention_peers "$cache"
  record bench "$work/bench.out" ${peers:+"$peers"} "$output/bench_$day.json" || failed=1
  # Times the cost model's choice of deterministic kernels.
  HSTUJIT_DETERMINISTIC=1 $hstujit bench --grid "$here/grid.json" --cache-dir "$work/deterministic" --out "$work/bench.out" || failed=1
  record deterministic_bench "$work/bench.out" "$output/deterministic_bench_$day.json" || failed=1
fi

if step profile; then
  metrics=gpu__time_duration.sum,sm__cycles_elapsed.max,dram__throughput.avg.pct_of_peak_sustained_elapsed
  metrics+=,lts__t_sectors.avg.pct_of_peak_sustained_elapsed,sm__inst_issued.avg.pct_of_peak_sustained_active
  metrics+=,sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active,sm__warps_active.avg.pct_of_peak_sustained_active
  metrics+=,launch__registers_per_thread,launch__occupancy_limit_shared_mem
  for cell in $(python3 -c 'import json, sys; print(*(x["name"] for x in json.load(open(sys.argv[1]))))' "$here/grid.json"); do
    echo "== $cell"
    ncu --metrics $metrics --csv --kernel-name regex:hstu --launch-skip 5 --launch-count 1 "$hstujit" bench --grid "$here/grid.json" --op "$cell" --cache-dir "$cache" 2> "$work/log"
  done > "$work/profile.out"
  record profile "$work/profile.out" "$output/profile_$day.json" || failed=1
fi

if step cliffs; then
  $hstujit prewarm --config "$here/cliffs.json" --cache-dir "$work/cliffs" 2> /dev/null | tail -n 1
  $hstujit bench --config "$here/cliffs.json" --cache-dir "$work/cliffs" --out "$work/cliffs.out" || failed=1
  record cliffs "$work/cliffs.out" "$output/cliffs_$day.json" || failed=1
fi

if step delta; then
  for times in untuned tuned; do
    [ $times = tuned ] && { $hstujit tune --config "$here/delta.json" --budget 120s --json --cache-dir "$work/delta" > /dev/null 2> "$work/log" || failed=1; }
    $hstujit bench --config "$here/delta.json" --cache-dir "$work/delta" --out "$work/delta_$times.out" || failed=1
  done
  record delta "$work/delta_untuned.out" "$work/delta_tuned.out" "$output/delta_$day.json" || failed=1
fi

if step rows_matrix; then
  for direction in forward backward; do
    agreement rows_${direction}_matrix --rows --direction $direction
    sanitized rows_${direction}_sanitizer --only rows_ --direction $direction
  done
fi

# The tuner's report has the times of the cost model's choices, too: untuned, a launch may find a record that is shipped.
# It is recorded by itself, too: its clocks are not those of the benchmark, so only its own times are compared.
tuned() { # CONFIG BUDGET
  $hstujit tune --config "$here/$1.json" --budget "$2" --json --cache-dir "$work/$1" > "$work/$1_tune.json" 2> "$work/log" || failed=1
  record tune "$work/$1_tune.json" "$output/tune_$1_$day.json" || failed=1
  $hstujit bench --config "$here/$1.json" --cache-dir "$work/$1" --out "$work/$1_tuned.out" || failed=1
}

# GENERATIVE_RECOMMENDERS names a checkout of the public operators, which are timed beside ours; without it there are PyTorch's alone.
if step rows; then
  tuned rows 240s
  python3 "$here/row_peers.py" ${GENERATIVE_RECOMMENDERS:+--generative-recommenders "$GENERATIVE_RECOMMENDERS"} > "$work/row_peers.json" 2> "$work/log" || failed=1
  record rows "$work/rows_tune.json" "$work/rows_tuned.out" "$work/row_peers.json" "$output/rows_$day.json" || failed=1
fi

if step sequences_matrix; then
  for direction in forward backward; do
    agreement sequences_${direction}_matrix --sequences --direction $direction
  done
fi

if step row_sweep; then
  $hstujit prewarm --config "$here/row_sweep.json" --cache-dir "$work/row_sweep" 2> /dev/null | tail -n 1
  $hstujit bench --config "$here/row_sweep.json" --cache-dir "$work/row_sweep" --out "$work/row_sweep.out" || failed=1
  record row_sweep "$work/row_sweep.out" "$output/row_sweep_$day.json" || failed=1
fi

if step serving; then
  agreement serving_matrix --serving
  sanitized serving_sanitizer --only serving_
fi

# Also by schedules that the cost model may not choose: ping-pong, one band of tiles; clusters, buffers of stores in turn; and by mma.sync.
if step products_matrix; then
  agreement products_matrix --products
  agreement products_backward_matrix --products --direction backward
  sanitized products_sanitizer --only product_
  overridden fused products_ping_pong '"block_m": 64, "block_n": 192, "stages": 3, "ping_pong": true, "split_k": 1, "raster_rows": 1, "cluster": 1' --only product_
  overridden fused products_mma '"skeleton": "gemm/sm80", "block_m": 128, "block_n": 128, "stages": 3, "consumers": 2, "ping_pong": false, "split_k": 1, "raster_rows": 8, "cluster": 1' --only product_
  overridden fused products_clusters '"block_m": 128, "block_n": 256, "stages": 4, "ping_pong": false, "split_k": 1, "raster_rows": 2, "cluster": 2' --only product_
  overridden fused products_cluster_k '"block_m": 128, "block_n": 64, "stages": 6, "consumers": 2, "ping_pong": false, "split_k": 1, "raster_rows": 4, "cluster": 1, "cluster_k": 4' --only product_
fi

if step products; then
  tuned products 300s
  python3 "$here/product_peers.py" > "$work/product_peers.json" 2> "$work/log" || failed=1
  record products "$work/products_tune.json" "$work/products_tuned.out" "$work/product_peers.json" "$output/products_$day.json" || failed=1
fi

# With GENERATIVE_RECOMMENDERS as above.
if step sequences; then
  tuned sequences 120s
  python3 "$here/sequence_peers.py" ${GENERATIVE_RECOMMENDERS:+--generative-recommenders "$GENERATIVE_RECOMMENDERS"} > "$work/sequence_peers.json" 2> "$work/log" || failed=1
  record sequences "$work/sequences_tune.json" "$work/sequences_tuned.out" "$work/sequence_peers.json" "$output/sequences_$day.json" || failed=1
fi

if step programs; then
  for direction in forward backward; do
    agreement programs_${direction}_matrix --only program_ --direction $direction
    agreement layers_${direction}_matrix --layers --direction $direction
  done
  sanitized layers_sanitizer --only layer
  "$binaries/test_gpu_program" || failed=1
fi

if step halves; then
  $hstujit bench --config "$here/halves.json" --json --cache-dir "$work/halves" > "$work/halves.out" 2> "$work/log" || failed=1
  HSTUJIT_CACHE_DIR=$work/halves python3 "$here/half_peers.py" ${GENERATIVE_RECOMMENDERS:+--generative-recommenders "$GENERATIVE_RECOMMENDERS"} > "$work/half_peers.json" 2> "$work/log" || failed=1
  record halves "$work/halves.out" "$work/half_peers.json" "$output/halves_$day.json" || failed=1
fi

# NAME: cells of NAME.json, tuned, beside public kernels. TRAFFIC_ONLY=REGEX takes some of them, TRAFFIC_SEED says how those are drawn
# that have no seed, and with TRAFFIC_REDRAW=1 all.
attention_on() {
  local name=$1
  python3 "$here/traffic.py" --cells "$here/$name.json" ${TRAFFIC_SEED:+--seed "$TRAFFIC_SEED"} ${TRAFFIC_REDRAW:+--redraw} \
    ${TRAFFIC_ONLY:+--only "$TRAFFIC_ONLY"} > "$work/$name.json" || failed=1
  $hstujit tune --config "$work/$name.json" --budget 300s --json --cache-dir "$work/$name" > "$work/${name}_tune.json" 2> "$work/log" || failed=1
  $hstujit bench --config "$work/$name.json" --cache-dir "$work/$name" --out "$work/${name}_tuned.out" || failed=1
  attention_peers "$work/$name" --config "$work/$name.json"
  record $name "$work/${name}_tune.json" "$work/${name}_tuned.out" ${peers:+"$peers"} "$output/${name}_$day.json" || failed=1
}

# Lengths as traffic has them, half of them drawn anew, and the shapes of public models.
if step traffic; then
  attention_on traffic
fi
if step models; then
  attention_on models
fi

# Times of candidates, for bench/fit_costs.cpp: of random instances, CELLS_SEED (1), CELLS_COUNT (54), CELLS="--short --exhaustive",
# or of those of CELLS_CONFIG.
if step candidate_times; then
  if [ -n "${CELLS_CONFIG:-}" ]; then
    cp "$CELLS_CONFIG" "$work/cells.json" || failed=1
  else
    python3 "$here/random_cells.py" --seed "${CELLS_SEED:-1}" --count "${CELLS_COUNT:-54}" ${CELLS:-} > "$work/cells.json" || failed=1
  fi
  $hstujit tune --config "$work/cells.json" --budget 600s --json --cache-dir "$work/cells" > "$work/cells_tune.json" 2> "$work/log" || failed=1
  record candidate_times "$work/cells_tune.json" "$output/candidate_times_$day.json" || failed=1
fi

# Through PyTorch, too; it wants the Python package, and GENERATIVE_RECOMMENDERS as above.
if step layers; then
  tuned layers 300s
  HSTUJIT_CACHE_DIR=$work/layers python3 "$here/layer_peers.py" ${GENERATIVE_RECOMMENDERS:+--generative-recommenders "$GENERATIVE_RECOMMENDERS"} > "$work/layer_peers.json" 2> "$work/log" || failed=1
  record layers "$work/layers_tune.json" "$work/layers_tuned.out" "$work/layer_peers.json" "$output/layers_$day.json" || failed=1
fi

# The benchmark by two builds in turns, none of them tuned.
if step compare; then
  reports=()
  for round in 0 1 2 3 4 5; do
    for build in "${COMPARED_WITH:?names the folder of the older build\'s hstujit}" "$binaries"; do
      report=$work/compare_${#reports[@]}.out
      "$build/hstujit" bench --grid "$here/grid.json" --cache-dir "$work/compare_$(basename "$(realpath "$build/../..")")" --out "$report" > /dev/null || failed=1
      [ "$round" = 0 ] || reports+=("$report")  # the first round compiles
    done
  done
  record compare "${reports[@]}" "$output/compare_$day.json" || failed=1
fi

if step faults; then
  "$binaries/test_gpu_faults" "--gtest_output=json:$work/faults.out" > "$work/faults.log" 2>&1 || { failed=1; cat "$work/faults.log"; }
  record faults "$work/faults.out" "$output/faults_$day.json" || failed=1
fi

if step startup; then
  export CUDA_CACHE_DISABLE=1  # NVRTC keeps a cache of its own, which would make a cold key warm
  for repeat in 1 2 3; do
    rm -rf "$work/fresh"
    "$binaries/bench_startup" "$work/fresh" >> "$work/cold.out" || failed=1
    for again in 1 2 3; do "$binaries/bench_startup" "$work/fresh" >> "$work/warm.out" || failed=1; done
  done
  record startup "$work/cold.out" "$work/warm.out" "$output/startup_$day.json" || failed=1
fi
exit $failed
