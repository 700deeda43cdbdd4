#!/usr/bin/env python3
"""Writes the tables of docs/results.md of operators over rows, over rows of sequences, and of whole layers, from the newest
bench/results/rows_*.json, sequences_*.json and layers_*.json that have other libraries' times.

    tools/row_table.py            rewrite the blocks between the markers rows:begin, rows:end, layers:begin and layers:end
    tools/row_table.py --check    exit 1, with the difference, when a block is not what would be written

Such files are of `bench/run_gpu.sh -s "rows sequences layers"`, with what bench/row_peers.py, bench/sequence_peers.py and
bench/layer_peers.py printed on the same machine.
"""
import argparse
import pathlib
import sys
import textwrap

from bench_table import Mistake, ROOT, bring_in_step, load, with_block

sys.path.insert(0, str(ROOT / "bench"))
import agreement  # noqa: E402

BEGIN = "<!-- rows:begin -->"
END = "<!-- rows:end -->"
LAYERS = ("<!-- layers:begin -->", "<!-- layers:end -->")
NOT_COMPARED = ("The public layer of this record computes attention of other elements than it should, so that its results differ from",
                "ours ([performance.md](performance.md#layers) says why): the ratios are of its time alone.")
PEERS = [("PyTorch", "pytorch"), ("torch.compile", "torch_compile"), ("Triton", "triton")]


def newest(folder, step, with_peers=True, part=""):
    """(path, report) of the step's last one, with times of others where it is to have them; None without any. A part of it has
    another name: the step's and "_" and `part`."""
    reports = [(path, load(path)) for path in folder.glob(f"{step}{part}_????-??-??.json")]
    known = [entry for entry in reports if entry[1].get("step") == step and ("peers" in entry[1] or not with_peers)]
    return max(known, key=lambda entry: (entry[1]["environment"]["date"], entry[0].name), default=None)


def line(name, direction, ours, peer):
    times = [peer.get(key, {}).get(direction) for _, key in PEERS]
    known = [time for time in times if time is not None]
    cells = [name, direction, f"**{ours:.3f}**"] + ["–" if time is None else f"{time:.3f}" for time in times]
    cells.append(f"**{min(known) / ours:.2f}×**" if known else "–")
    copy = peer["copy_ms"][direction]
    return "| " + " | ".join(cells + [f"{copy:.3f}", f"{100 * copy / ours:.0f} %"]) + " |"


def render(path, report):
    environment, step, peers = report["environment"], report["step"], {row["name"]: row for row in report["peers"]["times"]}
    lines = [
        f"{environment['gpu']}, PyTorch {report['peers']['torch']}, {environment['date']}, at {environment['commit']}; from",
        f"`bench/results/{path.name}`.",
        f"The operators are those of that name in `bench/{step}.json`.",
        "Copy is cudaMemcpyAsync of as many bytes. Times are in ms, cold L2, all of one run.",
        "",
        "| operator | direction | hstu-jit | " + " | ".join(title for title, _ in PEERS) + " | best other / hstu-jit | copy | of copy |",
        "|---|---|" + "--:|" * (len(PEERS) + 4),
    ]
    for row in report["results"]:
        if row["name"] in peers and "median_ms" in row:
            lines.append(line(row["name"], row["direction"], row["median_ms"], peers[row["name"]]))
    untuned = sorted({row["name"] for row in report["results"] if row["name"] in peers and not row.get("tuned")})
    if untuned:
        lines += ["", *textwrap.wrap(f"Untuned: {', '.join(untuned)}.", 118, break_on_hyphens=False)]
    return "\n".join(lines) + "\n"


def tuned_of(report):
    """A sentence on where the kernels of layers come from."""
    steps = [step.get("tuned") for row in report["results"] for step in row["steps"]]
    return "All kernels were tuned." if all(steps) else "Some kernels were tuned." if any(steps) else "No kernel was tuned."


def are_compared(row):
    """False of a record from before bench/agreement.py, when ways were timed whatever they computed."""
    apart = row.get("difference", {})
    return isinstance(apart, dict) or apart <= agreement.LARGEST["forward"]["bf16"]


def render_layers(path, report):
    environment = report["environment"]
    lines = [
        f"{environment['gpu']}, PyTorch {report['peers']['torch']}, {environment['date']}, at {environment['commit']}; from",
        f"`bench/results/{path.name}`, with the lengths of `bench/layers.json`.",
        f"Times are in ms, cold L2. {tuned_of(report)}",
        *(() if all(map(are_compared, report["peers"]["times"])) else NOT_COMPARED),
        "",
        "| layer | forward | Triton | | training step | Triton | | peak MiB | Triton |",
        "|---|" + "--:|" * 8,
    ]
    for row in report["peers"]["times"]:
        if "triton" not in row:  # was timed alone
            continue
        ours, other = row["hstujit"], row["triton"]
        cells = [row["name"]]
        for key in ("forward", "training"):
            cells += [f"**{ours[key]:.2f}**", f"{other[key]:.2f}", f"**{other[key] / ours[key]:.2f}×**"]
        lines.append("| " + " | ".join([*cells, f"{ours['peak_mib']:,}", f"{other['peak_mib']:,}"]) + " |")
    return "\n".join(lines) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is out of step")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "results.md")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    options = parser.parse_args(arguments)

    chosen = [entry for step in ("rows", "sequences") if (entry := newest(options.results, step))]
    text = options.page.read_text(encoding="utf-8")
    wanted = with_block(text, "\n".join(render(*entry) for entry in chosen), options.page, BEGIN, END)
    layers = newest(options.results, "layers")
    if layers:
        wanted = with_block(wanted, render_layers(*layers), options.page, *LAYERS)
    return bring_in_step(options.page, text, wanted, options.results, options.check)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Mistake as mistake:
        print(f"row_table: {mistake}", file=sys.stderr)
        sys.exit(2)
