#!/usr/bin/env python3
"""Writes bench/results/README.md: what each file there is, what came out, and of which date and commit.

    tools/results_index.py            write it
    tools/results_index.py --check    exit 1, with the difference, when it is not what would be written
"""
import argparse
import pathlib
import sys

from bench_table import Mistake, ROOT, bring_in_step, load

SEMAPHORE = "backward matrix and compute-sanitizer over one config of deterministic dq accumulation by semaphores"
PER_SEQUENCE = "backward matrix and compute-sanitizer over one config of one CTA per (sequence, head)"
SEMAPHORE_REPEATED = "as deterministic, of deterministic dq accumulation by semaphores"
PER_SEQUENCE_REPEATED = "as deterministic, of one CTA per (sequence, head)"

# What a file is, by its name without the date; the longest beginning counts.
KINDS = {
    "backward_matrix": "every mask, data type and dimension, backward, against float64",
    "backward_sanitizer": "memcheck and racecheck over small instances, backward",
    "bench": "the benchmark; of each direction the README has the newest one that was tuned",
    "compare": "the benchmark by the build before operators had families, and after, in turns, untuned",
    "cliffs": "neighbours of the benchmark's cells: `bench/cliffs.json`",
    "delta": "attention of the last rows of sequences: `bench/delta.json`",
    "dense_bmm": "products of sequences, untuned, beside PyTorch, torch.compile and Triton: `dense-bmm` of `bench/sequences.json`",
    "deterministic": "200 launches under load of each instance, bitwise compared, beside a kernel that is not deterministic",
    "deterministic_layers_backward": "as deterministic, of layers and their halves alone, backward",
    "deterministic_others_backward": "as deterministic, of all operators but attention, backward",
    "deterministic_others_forward": "the same, forward",
    "deterministic_bench": "the benchmark with deterministic kernels, the cost model's choice",
    "deterministic_per_sequence": PER_SEQUENCE_REPEATED,
    "deterministic_semaphore": SEMAPHORE_REPEATED,
    "emitted": "programs beside emitted source, built with nvcc and run",
    "faults": "candidates that crash, hang or write nothing, in the tuner",
    "fused": "backward matrix and compute-sanitizer over one config of the fused kernel",
    "halves": "the halves of a layer, their products and the norm, untuned, beside others: `bench/halves.json`, `bench/half_peers.py`",
    "layers": "whole layers, beside the public ones: `bench/layers.json`, `bench/layer_peers.py`",
    "three_ctas": "attention forward, three CTAs on a multiprocessor with any mask; memcheck and racecheck over some of them",
    "four_ctas": "the same, four CTAs with heads of 32",
    "four_ctas_backward": "the same, backward",
    "layers_backward_matrix": "whole layers and their halves, backward, against float64",
    "layers_forward_matrix": "the same, forward",
    "layers_backward_sanitizer": "memcheck and racecheck over every second of the small ones, backward",
    "layers_sanitizer": "memcheck and racecheck over some of them",
    "list_backward": "a third of the backward matrix, 16 bits, and compute-sanitizer, by lists that sort 1,024 sequences",
    "list_forward": "the same, forward",
    "compatibility": "tests of the public packages with these operators in place: docs/compatibility.md",
    "matrix": "every mask, data type and dimension, forward, against float64",
    "per_sequence": PER_SEQUENCE,
    "packed": "a third of the matrix, bf16, and compute-sanitizer, by tiles of several short sequences",
    "small_ctas_backward": "a quarter of the backward matrix, 16-bit data, and compute-sanitizer, by small CTAs of one warp",
    "small_ctas_forward": "a quarter of the matrix, 16-bit data, and compute-sanitizer, by small CTAs of one warp",
    "small_ctas_two_forward": "the same by small CTAs of two warps",
    "packed_backward": "a sixth of the backward matrix, bf16, by tiles of several short sequences",
    "ping_pong": "matrix and compute-sanitizer with ping-pong scheduling",
    "profile": "the benchmark's cells under the profiler",
    "products_backward_matrix": "gradients of products, every size, layout and addend, against float64",
    "products_bias_matrix": "products with the gradient of a bias beside that of weights, every size and layout, against float64",
    "products_bias_sanitizer": "memcheck and racecheck over some of them",
    "products_cluster_k": "a third of them, matrix and compute-sanitizer, by clusters that share the sum of a tile",
    "products_clusters": "a third of them, matrix and compute-sanitizer, by clusters that share columns",
    "products_matrix": "products of matrices, every size, layout and addend, against float64",
    "products": "products of `bench/products.json`, and the cost model's choices, beside cuBLAS: `bench/product_peers.py`",
    "products_mma": "a third of them, matrix and compute-sanitizer, by mma.sync",
    "products_ping_pong": "the same by ping-pong",
    "products_ping_pong_matrix": "the same by ping-pong",
    "products_jagged_matrix": "products of sequences, every size, layout and bias, against float64",
    "products_silu_matrix": "those with silu of their first columns, and not: sizes, layouts, data types, against float64",
    "products_sanitizer": "memcheck and racecheck over some of them",
    "programs_backward_matrix": "a norm and attention in one call, backward, against float64",
    "programs_backward_sanitizer": "memcheck and racecheck over some of them",
    "programs_forward_matrix": "the same, forward",
    "programs_forward_sanitizer": "memcheck and racecheck over some of them",
    "rows": "operators over rows, beside PyTorch, torch.compile and Triton: `bench/rows.json`, `bench/row_peers.py`",
    "row_sweep": "widths of rows, aligned or not, and numbers of rows, one after the other: `bench/row_sweep.json`",
    "rows_8192": "the same of 8192 columns, beside PyTorch and torch.compile",
    "rows_all_tuned": "operators over rows, 8192 columns too, tuned and the cost model's choices, without their neighbours",
    "rows_wide_matrix": "operators over rows that stay in shared memory, 6144 and 8192 columns, against float64",
    "rows_wide_sanitizer": "memcheck and racecheck over some of them",
    "rows_backward_sanitizer": "memcheck and racecheck over operators over rows, backward",
    "rows_dropout_backward_matrix": "half of those of hstu_norm_mul_dropout, backward",
    "rows_dropout_forward_matrix": "the same, forward",
    "rows_forward_sanitizer": "memcheck and racecheck over operators over rows, forward",
    "rows_fifteenth_backward_matrix": "a fifteenth of those of operators over rows, backward, against float64",
    "rows_fifteenth_forward_matrix": "the same, forward",
    "rows_ring_matrix": "operators over rows that wait in shared memory, untuned or not, against float64",
    "rows_three_eighths_backward_matrix": "three eighths of operators over rows, backward, against float64",
    "rows_quarter_forward_matrix": "a quarter of operators over rows, forward, against float64",
    "segments_backward_matrix": "sums of the rows of each sequence, backward, widths from 1 to 8192, against float64",
    "segments_backward_sanitizer": "memcheck and racecheck over those",
    "sequences_quarter_forward_matrix": "a quarter of operators over rows of sequences, forward, against float64",
    "rows_half_backward_matrix": "half of those of operators over rows, backward, against float64",
    "rows_half_forward_matrix": "the same, forward",
    "rows_backward_matrix": "operators over rows, every data type, width and option, backward, against float64",
    "rows_forward_matrix": "the same, forward",
    "random": "instances at random, forward, backward and of last rows, against float64",
    "ranks": "tuning shared out over two GPUs",
    "sanitizer": "memcheck and racecheck over small instances, forward",
    "semaphore": SEMAPHORE,
    "sequences": "operators over rows of sequences, beside PyTorch, torch.compile and Triton: `bench/sequences.json`, `bench/sequence_peers.py`",
    "sequences_backward_matrix": "operators over rows of sequences, every data type, width and option, backward, against float64",
    "sequences_sixth_backward_matrix": "a sixth of those of operators over rows of sequences, backward, against float64",
    "sequences_sixth_forward_matrix": "the same, forward",
    "sequences_backward_sanitizer": "memcheck and racecheck over operators over rows, of sequences and not, backward",
    "sequences_forward_matrix": "the same, forward",
    "sequences_forward_sanitizer": "the same, forward",
    "serving_matrix": "caches of keys and values, and offsets of lengths, against the reference",
    "serving_sanitizer": "memcheck and racecheck over some of them",
    "startup": "a process's way to its first launch, with a cold and a warm cache",
    "crowds_backward_matrix": "batches of more sequences than kernels sort, by the cost model's choice, backward, against float64",
    "crowds_forward_matrix": "the same, forward",
    "crowds_fused_matrix": "the same by the fused backward's list",
    "crowds_semaphore_matrix": "the same by the schedule of semaphores",
    "crowds_list_backward": "the same by a list with groups of sequences, backward; memcheck and racecheck over some of them",
    "crowds_list_forward": "the same, forward",
    "layers_alone": "whole layers of this library alone, with the memory at the peak of a training step",
    "layers_mixes": "whole layers beside the public one and beside mixes of public operators and cuBLAS",
    "candidate_times": "times of every candidate of attention instances drawn at random, to fit cost models on",
    "traffic": "attention at the lengths of traffic, tuned, beside the public Triton operator: `bench/traffic.json`",
    "tune": "tuning of a config's keys: winners, times, the untuned choice beside them",
    # Names of the schedules "semaphore" and "per_sequence" in earlier files.
    "deterministic_ordered": SEMAPHORE_REPEATED,
    "deterministic_whole": PER_SEQUENCE_REPEATED,
    "ordered": SEMAPHORE,
    "whole": PER_SEQUENCE,
}
PREAMBLE = """# Results

Written by `tools/results_index.py`; a test keeps it in step. `bench/run_gpu.sh` makes the files on a machine with a
GPU; what they mean is in [docs/performance.md](../../docs/performance.md). Names with `h100` are of an H100, all others
of an H200. Those with `half`, `third` or another part are of runs over that part of the instances.

"""


def kind_of(path):
    name = path.stem.rpartition("_")[0]
    known = [kind for kind in KINDS if name == kind or name.startswith(kind + "_")]
    if not known:
        raise Mistake(f"{path}: KINDS of tools/results_index.py does not say what {name} is")
    kind = max(known, key=len)
    for ending in ("_matrix", "_sanitizer"):
        if ending in name and ending not in kind and ending[1:] != kind:
            raise Mistake(f"{path}: KINDS of tools/results_index.py does not say what {name} is; {kind} is something else")
    return KINDS[kind]


def outcome(report):
    if "packages" in report:
        results = [test["result"] for package in report["packages"].values() for test in package["results"].values()]
        return f"{results.count('passed')} passed, {results.count('failed')} failed"
    result = report.get("result")
    if not isinstance(result, dict):
        failed = sum("median_ms" not in row for row in report.get("results", []))
        return f"{len(report.get('results', []))} cells" + (f", {failed} failed" if failed else "")
    if "instances" in result:
        worst = max(result["worst_share_of_bound"].values(), default=0)
        return f"{result['agree']} of {result['instances']} agree, the worst at {worst:.2f} of its bound"
    if "slowest_key_s" in result:
        return f"{len(result['keys'])} keys, {result['slowest_key_s']:.1f} s at most"
    if "memcheck" in result:
        return "; ".join(f"{tool}: {what['summary']}, {what['instances']} instances" for tool, what in result.items())
    if "ms" in result:
        return f"{len(result['ms'])} ran, {len(result['failed'])} failed"
    if "passed" in result:
        return f"{len(result['passed'])} passed"
    if "cold" in result:
        return f"{result['cold']['first_call_ms']:.0f} ms cold, {result['warm']['first_call_ms']:.1f} ms warm"
    return ""


def render(folder):
    lines = ["| file | what | outcome | date | commit |", "|---|---|---|---|---|"]
    for path in sorted(folder.glob("*.json")):
        report = load(path)
        environment = report.get("environment", {})
        if "date" not in environment or "commit" not in environment:
            raise Mistake(f"{path}: environment.date or environment.commit is missing")
        cells = [f"[{path.name}]({path.name})", kind_of(path), outcome(report), environment["date"], environment["commit"]]
        lines.append("| " + " | ".join(cells) + " |")
    return PREAMBLE + "\n".join(lines) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the index is out of step")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    options = parser.parse_args(arguments)

    index = options.results / "README.md"
    present = index.read_text(encoding="utf-8") if index.exists() else ""
    return bring_in_step(index, present, render(options.results), options.results, options.check)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Mistake as mistake:
        print(f"results_index: {mistake}", file=sys.stderr)
        sys.exit(2)
