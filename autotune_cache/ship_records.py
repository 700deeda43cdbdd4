#!/usr/bin/env python3
"""Copies the tuning records of a cache directory to autotune_cache/records, each with two timings: winner and heuristic.

    autotune_cache/ship_records.py CACHE_DIRECTORY

The rest of the timings is of no use to whoever looks up a winner, and twenty times as large. docs/cache-format.md has the
format.
"""

import hashlib
import json
import pathlib
import sys

RECORDS = pathlib.Path(__file__).resolve().parent / "records"


def slim(record):
    kept = [record[choice]["config"] for choice in ("winner", "heuristic") if choice in record]
    record["timed"] = [timed for timed in record["timed"] if timed["config"] in kept and timed["workload"] == record["workload"]]
    record["rejected"] = []
    del record["checksum"]
    compact = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
    record["checksum"] = hashlib.sha256(compact.encode()).hexdigest()
    return record


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cache = pathlib.Path(sys.argv[1])
    files = sorted(cache.glob("v1/tuning/*/*.json"))
    for file in files:
        place = RECORDS / file.relative_to(cache)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(slim(json.loads(file.read_text())), indent=2, ensure_ascii=False) + "\n")
    print(f"{len(files)} records in {RECORDS}")


if __name__ == "__main__":
    main()
