#!/usr/bin/env python3
"""Puts the tuning records of a cache directory into autotune_cache/shipped, each with two timings: winner and heuristic.

    autotune_cache/shipped/ship_records.py CACHE_DIRECTORY

The rest of the timings is of no use to whoever looks up a winner, and twenty times as large. A device has one file, with a
line for each record; a record takes the place of the one that has its key. docs/cache-format.md has the format of a record.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import re

RECORDS = pathlib.Path(__file__).resolve().parent


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def slim(record):
    kept = [record[choice]["config"] for choice in ("winner", "heuristic") if choice in record]
    record["timed"] = [timed for timed in record["timed"] if timed["config"] in kept and timed["workload"] == record["workload"]]
    record["rejected"] = []
    del record["checksum"]
    record["checksum"] = hashlib.sha256(compact(record).encode()).hexdigest()
    return record


def file_of(device, folder):
    """The file of a device, which is named as the driver names it: "NVIDIA H200" has nvidia_h200.jsonl."""
    return folder / (re.sub(r"[^a-z0-9]+", "_", device.lower()) + ".jsonl")


def add(records, file):
    """Adds records to a file, whose lines are in the order of their keys."""
    known = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    lines = {compact(record["key"]): compact(record) for record in [*known, *records]}
    file.write_text("".join(lines[key] + "\n" for key in sorted(lines)), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cache", type=pathlib.Path, metavar="CACHE_DIRECTORY")
    parser.add_argument("--records", type=pathlib.Path, default=RECORDS, help="the folder of the files")
    given = parser.parse_args()
    of_device = collections.defaultdict(list)
    for path in sorted(given.cache.glob("v1/tuning/*/*.json")):
        record = slim(json.loads(path.read_text(encoding="utf-8")))
        of_device[record["key"]["device"]].append(record)
    for device, records in of_device.items():
        add(records, file_of(device, given.records))
    print(f"{sum(map(len, of_device.values()))} records for {given.records}")


if __name__ == "__main__":
    main()
