#!/usr/bin/env python3
"""Writes the tables of attention in docs/results.md from bench/results: of each direction, the newest run that was tuned, or the newest one.

    tools/bench_table.py            rewrite the block between the bench:begin and bench:end markers of the page
    tools/bench_table.py --check    exit 1, with the difference, when the block is not what would be written

A results file is what `hstujit bench --out` wrote, with the public Triton operator's times beside ours where bench/attention_peers.py
took them. The times of other libraries are in bench/baselines.
"""
import argparse
import difflib
import json
import pathlib
import sys

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"
ROOT = pathlib.Path(__file__).resolve().parent.parent

# The columns of other libraries: title, then the names of their entries in a baseline file. A name in STARRED is a
# measurement of not quite the same work.
PEERS = [
    ("Triton", ["triton"]),
    ("Meta CUDA", ["meta_cuda", "meta_cuda_min_full_1"]),
    ("NVIDIA CUTLASS", ["nvidia_cutlass"]),
]
STARRED = {"meta_cuda_min_full_1"}
MARKS = {
    "*": "\\* takes this mask only with a full-attention tail; measured with a tail of one row.",
    "†": "† of `bench/baselines`: in the run itself no time was taken, where Triton's tuning crashed, say.",
}
DIRECTIONS = [("forward", "fwd_ms"), ("backward", "bwd_ms")]


class Mistake(Exception):
    """Something in a file that is not as it must be; one sentence."""


def load(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Mistake(f"cannot read {path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise Mistake(f"{path}:{error.lineno}:{error.colno}: malformed JSON: {error.msg}") from error


def all_reports(folder):
    """[(path, report)] of the benchmarks, not of what the other steps of bench/run_gpu.sh recorded: those name their "step"."""
    reports = [(path, load(path)) for path in sorted(folder.glob("*.json"))]
    reports = [(path, report) for path, report in reports if "step" not in report]
    for path, report in reports:
        if not report.get("results") or "date" not in report.get("environment", {}):
            raise Mistake(f"{path}: not a report of hstujit bench: environment.date or results is missing")
    return reports


def rows_of(report, direction):
    return [row for row in report["results"] if row["direction"] == direction]


def is_tuned(rows):
    timed = [row for row in rows if "median_ms" in row]
    return bool(timed) and all(row.get("tuned") for row in timed)


def chosen_report(reports, direction):
    """(path, report) that stands for a direction: a tuned one before others, then by its own date, then by name. None without any."""
    known = [entry for entry in reports if rows_of(entry[1], direction)]
    order = lambda entry: (is_tuned(rows_of(entry[1], direction)), entry[1]["environment"]["date"], entry[0].name)
    return max(known, key=order, default=None)


def beside(report):
    """{(name, direction): times}: of bench/attention_peers.py, those that have the public operator's time beside ours."""
    cells = report.get("peers", {}).get("times", [])
    return {(cell["name"], direction): cell[direction] for cell in cells for direction, _ in DIRECTIONS
            if "triton" in cell.get(direction, {})}


def peer_times(baseline, ours, pair):
    """[(time in ms, how it is marked, ours of the same measurement in ms) or None] in the order of PEERS."""
    times = []
    for title, entries in PEERS:
        known = [(baseline[name], "*" if name in STARRED else "", ours) for name in entries if name in baseline]
        if title == "Triton":
            known = [(pair["triton"], "", pair["hstujit"])] if pair else [(time, "†", ours) for time, _, ours in known]
        times.append(min(known) if known else None)
    return times


def speedup(peers):
    """How many times as long as ours the shortest of these times is, None without any."""
    return min((theirs / ours for theirs, _, ours in filter(None, peers)), default=None)


def format_row(row, baseline, pair):
    ours = row["median_ms"]
    peers = peer_times(baseline, ours, pair)
    cells = [row["name"], f"{row['rows']:,}", f"**{ours:.3f}** ± {100 * row['spread']:.1f} %"]
    cells += ["–" if peer is None else f"{peer[0]:.3f}{peer[1]}" for peer in peers]
    ratio = speedup(peers)
    cells.append(f"**{ratio:.2f}×**" if ratio else "–")
    cells.append(f"{row['limit_ms']:.3f} ({row['limit_by']})")
    cells.append(f"{100 * row['fraction_of_limit']:.0f} %")
    return "| " + " | ".join(cells) + " |", {peer[1] for peer in peers if peer and peer[1]}


def direction_table(direction, key, rows, baselines, pairs):
    lines = [f"**{direction.capitalize()}**{'' if is_tuned(rows) else ', untuned'} (ms)", ""]
    titles = ["shape", "rows", "hstu-jit"] + [title for title, _ in PEERS] + ["best public / hstu-jit", "limit", "of limit"]
    lines.append("| " + " | ".join(titles) + " |")
    lines.append("|---|" + "--:|" * (len(titles) - 1))
    marks = set()
    for row in rows:
        line, marked = format_row(row, baselines.get(row["name"], {}).get(key, {}), pairs.get((row["name"], direction)))
        lines.append(line)
        marks |= marked
    lines.append("")
    return lines, marks


def driver_version(version):
    """13000 is CUDA 13.0."""
    return f"{version // 1000}.{version % 1000 // 10}" if isinstance(version, int) else version


def origin(path, report):
    """The sentences before a table."""
    environment, ceilings = report["environment"], report["ceilings"]
    nvrtc = environment.get("nvrtc", "")
    nvrtc = ", ".join(nvrtc) if isinstance(nvrtc, list) else nvrtc
    matmul = f", a matrix product at {ceilings['matmul_tflop_per_s']:,.0f} TFLOP/s" if ceilings.get("matmul_tflop_per_s") else ""
    return [
        f"{environment['gpu']} ({environment['arch']}), driver for CUDA {driver_version(environment['driver'])}, NVRTC {nvrtc}, "
        f"{environment['date']};",
        f"cold L2, median of {report['repeats']} launches, from `bench/results/{path.name}`.",
        f"The limit is the shortest time at speeds of the same run: a copy at {ceilings['copy_gb_per_s']:,.0f} GB/s{matmul}.",
        "The number after ± is half the interquartile distance of the launches. With cold L2 a launch finds no data in it.",
        "",
    ]


def render(reports, baselines):
    """The text between the markers, without them."""
    lines, marks, failed = [], set(), []
    for direction, key in DIRECTIONS:
        chosen = chosen_report(reports, direction)
        if not chosen:
            continue
        rows = rows_of(chosen[1], direction)
        failed += [f"{row['name']} {direction}" for row in rows if "median_ms" not in row]
        rows = [row for row in rows if "median_ms" in row]
        if rows:
            table, marked = direction_table(direction, key, rows, baselines, beside(chosen[1]))
            lines += origin(*chosen) + table
            marks |= marked
    lines += [line for mark, line in MARKS.items() if mark in marks] + ([""] if marks else [])
    lines += ([f"Failed: {', '.join(failed)}.", ""] if failed else [])
    if any(beside(report) for _, report in reports):
        lines.append("Triton's times are of the same run, beside ours in one process (`bench/attention_peers.py`), and so are their ratios.")
    lines.append("Other libraries' times are those of `bench/baselines`, the best of each one's settings on the same GPU model.")
    return "\n".join(lines) + "\n"


def with_block(text, block, path, first=BEGIN, last=END):
    begin, end = text.find(first), text.find(last)
    if begin < 0 or end < begin:
        raise Mistake(f"{path} lacks the lines {first} and {last}")
    return text[: begin + len(first)] + "\n" + block + text[end:]


def bring_in_step(path, present, wanted, origin, check):
    """Writes `wanted`, made from `origin`, to the path; with `check` only shows how it differs from what is there. The exit code."""
    if not check:
        path.write_text(wanted, encoding="utf-8")
        return 0
    if present == wanted:
        return 0
    sys.stdout.writelines(difflib.unified_diff(present.splitlines(True), wanted.splitlines(True), str(path), "as generated"))
    print(f"{path} is not in step with {origin}: run `make bench-table`", file=sys.stderr)
    return 1


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is out of step")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "results.md")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--baseline", type=pathlib.Path, default=ROOT / "bench" / "baselines" / "peers_h200_attention.json")
    options = parser.parse_args(arguments)

    reports = all_reports(options.results)
    block = render(reports, load(options.baseline)) if reports else ""
    text = options.page.read_text(encoding="utf-8")
    wanted = with_block(text, block, options.page)
    return bring_in_step(options.page, text, wanted, options.results, options.check)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Mistake as mistake:
        print(f"bench_table: {mistake}", file=sys.stderr)
        sys.exit(2)
