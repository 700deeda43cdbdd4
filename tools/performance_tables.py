#!/usr/bin/env python3
"""Writes the tables of docs/performance.md that are of recorded files, each from the newest of its step in bench/results.

    tools/performance_tables.py            rewrite the blocks between the markers NAME:begin and NAME:end
    tools/performance_tables.py --check    exit 1, with the difference, when a block is not what would be written

The names of cells are those of bench/cliffs.json, delta.json, rows.json, layers.json, products.json, traffic.json and models.json.
What a page's own sentences say of a table is not checked.
"""
import argparse
import math
import pathlib
import re
import sys

from bench_table import Mistake, ROOT, bring_in_step, load, with_block
from row_table import newest, tuned_of

CLIFFS = {
    "d32": "D = 32", "d64": "D = 64", "d96": "D = 96", "d128": "D = 128", "d192": "D = 192", "d256": "D = 256",
    "d64-128": "64 / 128", "d128-64": "128 / 64", "fp16": "fp16", "int32": "int32 offsets", "no-mask": "no mask",
    "targets": "20 targets", "groups": "targets in groups of 4", "context": "32 contextual rows", "window": "window of 256",
    "window-full": "window, last 64 rows see all", "mix": "window, targets, context", "semi-local": "semi-local 256 / 64",
}
FEW_TILES = {
    "one-512": "one of 512 rows", "one-1k": "one of 1024", "one-1k-d64": "one of 1024, D = 64", "one-1k-targets": "one of 1024, 20 targets",
    "one-2k": "one of 2048", "one-2k-window": "one of 2048, window of 256, 32 contextual rows", "one-4k": "one of 4096",
    "four-512": "four of 512", "one-16k": "one of 16384 (no small batch)",
}
DELTA = {
    "delta-b64-4k-m64": "64 sequences of 4096, 64 new rows each", "delta-b64-4k-mixed": "64 of 819 to 4096, 64 each",
    "delta-b64-4k-m64-targets": "64 of 4096, 64 targets", "delta-b64-4k-jagged": "64 of 4096, 1 to 128 each",
    "delta-b8-4k-m64": "8 of 4096, 64 each", "delta-b1-16k-m1": "1 of 16384, 1 row", "delta-b1-16k-m16": "1 of 16384, 16 rows",
    "delta-b1-16k-m64": "1 of 16384, 64 rows", "delta-b1-1k-m64": "1 of 1024, 64 rows",
}
ROWS = {
    "layer-norm-256": ("`layer_norm`", "256"), "layer-norm-512": ("", "512"), "layer-norm-1024": ("", "1024"),
    "layer-norm-4096": ("", "4096"), "rms-norm-64": ("`rms_norm`", "64"), "rms-norm-512": ("", "512"), "rms-norm-1024": ("", "1024"),
    "swish-layer-norm-512": ("`swish_layer_norm`", "512"), "norm-mul-512": ("`hstu_norm_mul_dropout`", "512"),
    "norm-mul-concat-dropout-512": ("with concatenation and dropout", "512"), "group-norm-mul-4x128": ("with group norm", "4 × 128"),
    "group-norm-mul-concat-dropout-4x128": ("with all three", "4 × 128"),
}
LAYERS = {
    "rank-1k": "rank-1k, all computed again", "rank-1k-groups": "the same, `backward_head_groups` 2", "rank-1k-groups-4": "the same, 4",
    "rank-1k-less-memory": "the same, 4 and `recompute_attn`", "rank-1k-kept": "rank-1k, all kept",
    "rank-1k-kept-groups-4": "the same, `backward_head_groups` 4", "ml-100k-groups-4": "ml-100k, all computed again, 4 groups",
    "ml-100k-kept": "ml-100k, all kept",
}
MIXES = {"hstujit": "hstu-jit", "triton": "public layer", "mix": "Triton rows, cuBLAS", "torch_compile": "torch.compile, cuBLAS"}
PRODUCTS = {
    "131072x512x2048": "131072 × 512 × 2048", "131072x512x2048-dmat1": "its gradient of rows",
    "131072x512x2048-dmat2": "its gradient of weights", "131072x1536x512": "131072 × 1536 × 512",
    "131072x1024x4096": "131072 × 1024 × 4096", "8192x8192x8192": "8192 × 8192 × 8192", "4096x4096x4096": "4096 × 4096 × 4096",
    "131072x520x1000": "131072 × 520 × 1000", "4096x512x2048": "4096 × 512 × 2048", "300x512x2048": "300 × 512 × 2048",
}
# Pattern of the names of products behind their shape.
KINDS_OF_PRODUCTS = [
    ("`addmm`", ""), ("its gradient of rows", "-dmat1"), ("its gradient of weights", "-dmat2"), ("these three", "|-dmat1|-dmat2"),
    ("that of weights, with the gradient of a bias", "-dmat2-bias"), ("all three of fp32, `tf32`", "-tf32(|-dmat1|-dmat2)"),
    ("all three of fp32, `ieee`", "-ieee(|-dmat1|-dmat2)"),
]
SHAPE_OF_PRODUCT = r"(\d+)x(\d+)x(\d+)"


def table(head, rows):
    """Lines of a table whose first column is of words and whose others are of numbers."""
    lines = ["|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in [head, *rows]]
    return [lines[0], "|---|" + "--:|" * (len(head) - 1), *lines[1:]]


def origin(path, report, *more):
    environment = report["environment"]
    gpu = environment["gpu"] if "gpu" in environment else environment["devices"][0]["name"]
    return [" ".join([f"From `bench/results/{path.name}`: {gpu}, at {environment['commit']}.", *more]), ""]


def named(rows, *direction):
    """Rows by name, of one direction where it is given, that have a time."""
    return {row["name"]: row for row in rows if "median_ms" in row and (not direction or row["direction"] in direction)}


def at(rows, name, path):
    if name not in rows:
        raise Mistake(f"{path}: {name} is missing, or has no time")
    return rows[name]


def percent(share):
    return f"{100 * share:.0f} %"


def cliffs(path, report):
    cells = named(report["results"])
    shares = [[label, *(f"{100 * at(cells, f'{stem}-{length}', path)['fraction_of_limit']:.0f}" for length in ("1k", "4k"))]
              for stem, label in CLIFFS.items()]
    return origin(path, report) + table(["", "1k", "4k"], shares)


def few_tiles(path, report):
    cells = named(report["results"])
    times = [[label, *(f"{1e3 * at(cells, name + kind, path)['median_ms']:.1f}" for kind in ("", "-small"))]
             for name, label in FEW_TILES.items()]
    return origin(path, report) + table(["", "without", "`small_batches`"], times)


def delta(path, report):
    untuned, tuned = named(report["untuned"]), named(report["results"])
    rows = []
    for name, label in DELTA.items():
        before, after = at(untuned, name, path), at(tuned, name, path)
        rows.append([label, f"{1e3 * before['median_ms']:.1f}", percent(before["fraction_of_limit"]), f"{1e3 * after['median_ms']:.1f}"])
    return origin(path, report) + table(["", "untuned, µs", "of limit", "tuned, µs"], rows)


def rows_of_copy(path, report):
    copies = {row["name"]: row["copy_ms"] for row in report["peers"]["times"]}
    ours = {direction: named(report["results"], direction) for direction in ("forward", "backward")}
    lines = []
    for name, label in ROWS.items():
        shares = [percent(copies[name][direction] / at(ours[direction], name, path)["median_ms"]) for direction in ours]
        lines.append([*label, *shares])
    return origin(path, report) + table(["", "columns", "forward", "backward"], lines)


def slower(times, others):
    """The least and the greatest part by which the others' times of the same cells are longer, of both ways."""
    theirs = {row["name"]: row["hstujit"] for row in others}
    ratios = [theirs[row["name"]][way] / row["hstujit"][way] - 1
              for row in times if row["name"] in theirs for way in ("forward", "training")]
    return min(ratios), max(ratios)


def layers(path, report):
    times = {row["name"]: row for row in report["peers"]["times"]}
    lines = [["", "forward", "training", "peak", "forward", "training", "peak"]]
    for name, label in LAYERS.items():
        cells = [label]
        for way in ("hstujit", "triton"):
            one = at(times, name, path).get(way)
            cells += [f"{one['forward']:.2f}", f"{one['training']:.2f}", f"{one['peak_mib']:,}"] if one else ["", "", ""]
        lines.append(cells)
    text = origin(path, report, tuned_of(report)) + table(["", "hstu-jit", "", "", "public layer", "", ""], lines)
    other = path.with_name(path.name.replace("layers_", "layers_h100_"))
    if other.exists():
        least, most = slower(report["peers"]["times"], load(other)["peers"]["times"])
        text += ["", f"An H100 takes {100 * least:.0f} to {100 * most:.0f} % longer (`bench/results/{other.name}`)."]
    return text


def layer_mixes(path, report):
    """Layers beside the public one and beside mixes of the best public parts, all in one run."""
    lines = [["", *MIXES.values(), "best public / hstu-jit"]]
    for row in report["peers"]["times"]:
        if any(mix not in row for mix in MIXES):  # one was not timed, or computes something else
            continue
        for way in ("forward", "training"):
            times = [row[mix][way] for mix in MIXES]
            lines.append([f"{row['name']}, {way}", *(f"{time:.2f}" for time in times), f"{min(times[1:]) / times[0]:.2f}"])
    return origin(path, report) + table(lines[0], lines[1:])


def products(path, report):
    """PyTorch's time over ours, by kind; then some of the products, with what the tuner said of the untuned choice."""
    tuner = path.with_name("tune_" + path.name)
    lost = {key["name"]: key["heuristic_us"] / key["winner_us"] - 1 for key in load(tuner)["result"]["keys"] if key.get("heuristic_us")}
    ours = named(report["results"])
    theirs = {row["name"]: row["pytorch"]["forward"] for row in report["peers"]["times"] if "pytorch" in row}
    ratios = {name: theirs[name] / row["median_ms"] for name, row in ours.items() if name in theirs}
    summary = []
    for title, end in KINDS_OF_PRODUCTS:
        of_kind = {name: ratio for name, ratio in ratios.items() if re.fullmatch(f"{SHAPE_OF_PRODUCT}({end})", name)}
        if not of_kind:
            continue
        mean = math.exp(sum(map(math.log, of_kind.values())) / len(of_kind))
        least = min(of_kind, key=of_kind.get)
        shape = " × ".join(re.match(SHAPE_OF_PRODUCT, least).groups())
        summary.append([title, f"{mean:.2f}", f"{of_kind[least]:.2f}: {shape}",
                        f"{sum(ratio < 0.95 for ratio in of_kind.values())} of {len(of_kind)}"])
    some = []
    for name, label in PRODUCTS.items():
        ms = at(ours, name, path)["median_ms"]
        digits = 3 if ms >= 0.1 else 4
        some.append([label, f"{ms:.{digits}f}", f"{theirs[name]:.{digits}f}", f"{ratios[name]:.2f}", f"{100 * lost[name]:.1f} %"])
    fp32 = {name for name in lost if "-tf32" in name or "-ieee" in name}
    sentences = [f"The untuned choices of {len(names)} products {of} are {100 * sum(map(lost.get, names)) / len(names):.1f} % slower on average; "
                 f"{sum(lost[name] > 0.1 for name in names)} lose more than 10 %, none more than {100 * max(map(lost.get, names)):.0f} %."
                 for of, names in (("in 16 bits", lost.keys() - fp32), ("of fp32", fp32)) if names]
    return [
        *origin(path, report), "Time of PyTorch over that of hstu-jit, tuned:", "",
        *table(["", "geometric mean", "least", "below 0.95"], summary), "",
        "Some of them. The last column is by how much the cost model's choice is slower than the winner in the tuner's run",
        f"(`bench/results/{tuner.name}`), whose clocks are others than the benchmark's:", "",
        *table(["rows × k × n, ms", "hstu-jit, tuned", "PyTorch", "PyTorch / hstu-jit", "untuned, slower by"], some), "",
        *sentences,
    ]


TRITON = {"public": "speedup"}
BOTH_PEERS = {"Triton": "speedup", "FBGEMM": "speedup_fbgemm"}


def traffic_columns(cell, peers):
    """Columns of one direction: ms, its share of the limit, times of public kernels and of the untuned choice over it."""
    figures = [*peers.values(), "slower_untuned"]
    if not cell:
        return ["–"] * (2 + len(figures))
    ratios = [f"{cell[figure]:.2f}" if figure in cell else "–" for figure in figures]
    return [f"{cell['ms']:.3f}" if "ms" in cell else "", percent(cell["of_limit"]), *ratios]


def of_drawn(spreads, good, bad):
    """One of the figures of each distribution, as of a cell: of what is better when it is more, and when it is less."""
    wanted = {"of_limit": good, "speedup": good, "speedup_fbgemm": good, "slower_untuned": bad}
    return {figure: spreads[figure][which] for figure, which in wanted.items() if spreads.get(figure, {}).get("cells")}


def traffic(path, report, peers=None):
    result, directions, peers = report["result"], ("forward", "backward"), peers or TRITON
    lines = [[name, *(column for direction in directions for column in traffic_columns(cell.get(direction), peers))]
             for name, cell in result["cells"].items()]
    for label, good, bad in (("median", "median", "median"), ("least", "least", "most")):
        drawn = [of_drawn(result["drawn"].get(direction, {}), good, bad) for direction in directions]
        if any(drawn):
            lines.append([f"drawn anew, {label}", *(column for cell in drawn for column in traffic_columns(cell, peers))])
    head = [""] + [column for direction in directions for column in (f"{direction}, ms", "of limit", *peers, "untuned")]
    return origin(path, report) + table(head, lines)


def models(path, report):
    return traffic(path, report, BOTH_PEERS)


# The block of each step's newest file; some have what others take beside it.
BLOCKS = [
    ("cliffs", "cliffs", False, cliffs), ("few-tiles", "cliffs", False, few_tiles), ("delta", "delta", False, delta),
    ("rows", "rows", True, rows_of_copy), ("layers", "layers", True, layers), ("layer-mixes", "layers", True, layer_mixes),
    ("products", "products", True, products), ("traffic", "traffic", False, traffic),
    ("models", "models", False, models),
]

PARTS = {"layer-mixes": "_mixes"}  # of the steps of these blocks, by the names of their files


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is out of step")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "performance.md")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    options = parser.parse_args(arguments)

    present = options.page.read_text(encoding="utf-8")
    wanted = present
    for name, step, peers, render in BLOCKS:
        if found := newest(options.results, step, peers, PARTS.get(name, "")):
            text = "\n".join(render(*found)) + "\n"
            wanted = with_block(wanted, text, options.page, f"<!-- {name}:begin -->", f"<!-- {name}:end -->")
    return bring_in_step(options.page, present, wanted, options.results, options.check)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Mistake as mistake:
        print(f"performance_tables: {mistake}", file=sys.stderr)
        sys.exit(2)
