#!/usr/bin/env python3
"""Writes the table of autotune_cache/shipped/README.md: how many records are shipped, by operator, direction and GPU.

    tools/records_table.py            rewrite the block between the markers records:begin and records:end
    tools/records_table.py --check    exit 1, with the difference, when it is not what would be written
"""
import argparse
import collections
import json
import pathlib
import sys

from bench_table import Mistake, ROOT, bring_in_step, with_block

MARKS = ("<!-- records:begin -->", "<!-- records:end -->")


def render(folder):
    counts, days = collections.Counter(), collections.defaultdict(set)
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                record = json.loads(line)
                key = record["key"]
                counts[key["op"], key["direction"], key["device"]] += 1
                days[key["device"]].add(record["environment"]["date"])
            except json.JSONDecodeError as error:
                raise Mistake(f"{path}:{number}:{error.colno}: malformed JSON: {error.msg}") from error
            except KeyError as missing:
                raise Mistake(f"{path}:{number}: {missing} is missing") from missing
    devices = sorted(days)
    lines = [f"{counts.total()} records, tuned on:", "", *(f"- an {device}: {', '.join(sorted(days[device]))}" for device in devices), ""]
    lines = lines if devices else ["No record.", ""]
    lines += ["| operator | direction | " + " | ".join(devices) + " |", "|---|---|" + "--:|" * len(devices)]
    for op, direction in sorted({(op, direction) for op, direction, _ in counts}):
        cells = [f"`{op}`", direction, *(str(counts[op, direction, device] or "–") for device in devices)]
        lines.append("| " + " | ".join(cells) + " |")
    totals = (sum(count for (*_, of), count in counts.items() if of == device) for device in devices)
    lines.append("| all | | " + " | ".join(map(str, totals)) + " |")
    return "\n".join(lines) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the table is out of step")
    parser.add_argument("--records", type=pathlib.Path, default=ROOT / "autotune_cache" / "shipped")
    options = parser.parse_args(arguments)

    page = options.records / "README.md"
    present = page.read_text(encoding="utf-8")
    return bring_in_step(page, present, with_block(present, render(options.records), page, *MARKS), options.records, options.check)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Mistake as mistake:
        print(f"records_table: {mistake}", file=sys.stderr)
        sys.exit(2)
