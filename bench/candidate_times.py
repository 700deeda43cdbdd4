#!/usr/bin/env python3
"""Packs times of candidates into compressed CSV, and unpacks them for bench/fit_costs.cpp.

    bench/candidate_times.py pack REPORT.json            writes REPORT.csv.gz beside it
    bench/candidate_times.py unpack REPORT.csv.gz        prints the report as JSON

REPORT.json is what bench/record.py wrote of the step "candidate_times". A line of the CSV is one candidate of one key, its
time in microseconds; the same report always gives the same bytes.
"""
import argparse
import csv
import gzip
import io
import json
import pathlib
import sys

SUFFIX = ".csv.gz"
ORIGIN = ["date", "commit", "driver", "nvrtc", "library"]
KEY = ["name", "direction", "max_seq_len", "bucket", "short_sequences"]


class Mistake(Exception):
    """Something in a file that is not as it must be; one sentence."""


def cell_of(value):
    return value if isinstance(value, str) else json.dumps(value)


def value_of(field, cell):
    if field in ("date", "commit", "nvrtc", "library", "name"):
        return cell
    try:
        return json.loads(cell)
    except json.JSONDecodeError:
        return cell


def present(row, fields):
    """The fields of a row that have a value: an empty cell is a field that the report lacks."""
    return {field: value_of(field, row[field]) for field in fields if row[field] != ""}


def pack(report):
    """The bytes of a .csv.gz."""
    environment, result = report["environment"], report["result"]
    origin = {field: environment[field] for field in ORIGIN} | {"device": environment["devices"][0]["name"]}
    options = list(dict.fromkeys(field for config in result["configs"] for field in config))
    text = io.StringIO()
    table = csv.DictWriter(text, [*ORIGIN, "device", *KEY, *options, "us"], restval="", lineterminator="\n")
    table.writeheader()
    for key in result["keys"]:
        if not key["us"]:
            raise Mistake(f"{key['name']}, {key['direction']}, has no times; a line is one time")
        for place, us in key["us"].items():
            row = origin | {field: key[field] for field in KEY if field in key} | result["configs"][int(place)] | {"us": us}
            table.writerow({field: cell_of(value) for field, value in row.items()})
    return gzip.compress(text.getvalue().encode(), mtime=0)


def unpack(path):
    """The report of a .csv.gz; of its device only the name."""
    try:
        rows = list(csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode())))
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise Mistake(f"cannot read {path}: {error}") from error
    fields = list(rows[0]) if rows else []
    missing = [field for field in (*ORIGIN, "device", *KEY, "skeleton", "us") if field not in fields]
    if missing:
        raise Mistake(f"{path} has no column {missing[0]}, or no line")
    options = [field for field in fields if field not in (*ORIGIN, "device", *KEY, "us")]
    places, keys = {}, {}
    for row in rows:
        key = keys.setdefault(tuple(row[field] for field in KEY), present(row, KEY) | {"us": {}})
        config = json.dumps(present(row, options))
        key["us"][str(places.setdefault(config, len(places)))] = float(row["us"])
    environment = present(rows[0], ORIGIN) | {"devices": [{"name": rows[0]["device"]}]}
    result = {"configs": [json.loads(config) for config in places], "keys": list(keys.values())}
    return {"step": "candidate_times", "environment": environment, "result": result}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("way", choices=("pack", "unpack"))
    parser.add_argument("file", type=pathlib.Path)
    given = parser.parse_args()
    if given.way == "pack":
        given.file.with_suffix(SUFFIX).write_bytes(pack(json.loads(given.file.read_text(encoding="utf-8"))))
    else:
        json.dump(unpack(given.file), sys.stdout)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Mistake as mistake:
        print(f"candidate_times: {mistake}", file=sys.stderr)
        sys.exit(2)
