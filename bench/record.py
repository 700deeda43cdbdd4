#!/usr/bin/env python3
"""Turns the output of one step of bench/run_gpu.sh into a recorded result: a JSON file with date, GPU, versions and commit.

    bench/record.py --commit C --date D --device DOCTOR_JSON STEP INPUT... OUTPUT

Prints one line about the result; exit 1 when it is a failed check.
"""

import argparse
import csv
import itertools
import json
import re
import statistics
import sys

from record_traffic import traffic

# Steps whose input is a report of `hstujit bench`, and those with what others take beside it.
BENCHES = ("bench", "deterministic_bench", "cliffs", "delta", "rows", "row_sweep", "sequences", "products", "layers", "halves")
WITH_PEERS = ("bench", "rows", "sequences", "products", "layers", "halves")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def matrix(report):
    """Worst error as a share of its bound, per kind of instance (the middle of its name) and per mask (the first part)."""
    return agreement(load(report)["runs"])


def share_of_bound(run):
    if run.get("bound"):
        return run["error"] / run["bound"]
    return 0 if run.get("agrees") else float("inf")  # integers have a bound of 0; what did not run has none


def agreement(runs):
    if not runs:
        print("no instance was run")
        return {"instances": 0, "agree": 0, "wrong": [], "worst_share_of_bound": {}}, False
    worst = {}
    for run in runs:
        for part in run["name"].split("-"):
            worst[part] = max(worst.get(part, 0), share_of_bound(run))
    wrong = [run["name"] for run in runs if not run.get("agrees")]
    print(f"{len(runs) - len(wrong)} of {len(runs)} instances agree with float64, worst {max(worst.values()):.2f} of the bound")
    return {"instances": len(runs), "agree": len(runs) - len(wrong), "wrong": wrong,
            "worst_share_of_bound": {k: round(v, 3) for k, v in sorted(worst.items())}}, not wrong


def sanitizer(memcheck, racecheck):
    result, good = {}, True
    for tool, path in (("memcheck", memcheck), ("racecheck", racecheck)):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", text)
        agree = len(re.findall(r"  agrees\s*$", text, re.M))
        clean = bool(summary) and summary[-1].startswith("0 ") and agree > 0
        result[tool] = {"summary": summary[-1] if summary else "none", "instances": agree}
        good = good and clean
        print(f"{tool}: {result[tool]['summary']} over {agree} instances")
    return result, good


def fitting(report):
    """Rows of a report under an override that it fits, and the names of the others, which are not failures."""
    runs = load(report)["runs"]
    refused = {run["name"]: run["failure"]["message"] for run in runs if run.get("failure", {}).get("code") == "unsupported"}
    for sentence in sorted(set(refused.values())):
        print(f"refused: {sentence}")
    return [run for run in runs if run["name"] not in refused], sorted(refused)


def overridden(report, memcheck, racecheck):
    """The matrix and the sanitizers under an override."""
    runs, refused = fitting(report)
    result, agree = agreement(runs)
    result["refused"] = refused
    result["sanitizer"], clean = sanitizer(memcheck, racecheck)
    return result, agree and clean


def random(*portions):
    """Portions of random instances: the config and the report of each, which is empty where the program did not come back."""
    runs, wrong, seeds, broken = [], [], [], []
    for config, report in zip(portions[::2], portions[1::2]):
        instances = {instance["name"]: instance for instance in load(config)["ops"]}
        try:
            report = load(report)
        except ValueError:
            broken.append(instances)
            continue
        seeds.append(report["seed"])
        runs += report["runs"]
        wrong += [{"seed": report["seed"], "direction": run["direction"], "message": run.get("failure", {}).get("message"),
                   "instance": instances[run["name"]]} for run in report["runs"] if not run.get("agrees")]
    parts = [{**run, "name": run["name"].rsplit("-", 1)[0]} for run in runs]
    result, agree = agreement(parts)
    print(f"seeds {seeds}")
    for one in wrong:
        print(f"wrong, seed {one['seed']}: {one['instance']['name']}: {one['message']}")
    if broken:
        print(f"{len(broken)} portions gave no report, the first one with {', '.join(list(broken[0])[:3])}, ...")
    return {**result, "wrong": wrong, "seeds": seeds, "broken": [list(instances) for instances in broken]}, agree and not broken


def repeated(runs):
    """Instances, those whose launches were all equal, and of the others how many launches differed, by output."""
    equal = [run["name"] for run in runs if run.get("repeats", 0) > 1 and run["repeats_equal"] == run["repeats"]]
    return {"instances": len(runs), "launches": min((run.get("repeats", 0) for run in runs), default=0), "equal": len(equal),
            "different": {run["name"]: run.get("repeats_differ", {}) for run in runs if run["name"] not in equal}}


def deterministic(report, free=None):
    """Repeated launches of deterministic kernels, and of one that is not where there is one: its differences are no failure."""
    runs = load(report)["runs"]
    result, agree = agreement(runs)
    result["repeated"] = repeated(runs)
    counted = {"deterministic": result["repeated"]}
    if free:
        runs, refused = fitting(free)
        counted["other"] = result["not_deterministic"] = repeated(runs) | {"refused": refused}
    for kernels, counts in counted.items():
        print(f"{kernels} kernels: {counts['equal']} of {counts['instances']} instances equal in {counts['launches']} launches")
    return result, agree and result["repeated"]["equal"] == result["repeated"]["instances"]


LARGEST_DIFFERENCE = 0.03  # of the times of what two tunings of one key choose


def difference(key, again):
    """By how much the slower of two runs' winners exceeds the other, by the times of the run that is less in favour."""
    differences = []
    for run, own, other in ((key, key["winner"], again["winner"]), (again, again["winner"], key["winner"])):
        times = {json.dumps(timed["config"]): timed["median_us"] for timed in run["times"]}
        own_us, other_us = (times.get(json.dumps(config)) for config in (own, other))
        differences.append(abs(other_us / own_us - 1) if own_us and other_us else float("inf"))
    return max(differences)


def tune(report, repeated=None):
    """A run, or two with a cache of their own each."""
    keys = load(report)["keys"]
    def key_of(key):
        return key["name"], key.get("direction"), key["bucket"], key.get("small_batch", False), key.get("short_sequences", False)
    again = {key_of(key): key for key in load(repeated)["keys"]} if repeated else {}
    slowest = max(key["seconds"] for key in keys)
    worst = max((difference(key, again[key_of(key)]) for key in keys if repeated), default=0)
    compared = f"; two runs choose what differs by {100 * worst:.1f} % at most" if repeated else ""
    print(f"{len(keys)} keys, at most {slowest:.1f} s each{compared}")
    kept = ("name", "op", "direction", "bucket", "small_batch", "short_sequences", "winner", "winner_us", "winner_spread_us", "heuristic", "heuristic_us", "candidates", "timed", "seconds")
    result = {"slowest_key_s": slowest, "keys": [{k: key[k] for k in kept if k in key} for key in keys]}
    if repeated:
        result["second_run_differs_by"] = round(worst, 4)
    return result, worst < LARGEST_DIFFERENCE


UNSAID = {"warps": 0, "activation": "mufu", "lanes_arrive": False, "ping_pong": False, "split_kv": False, "pack_sequences": False}


def candidate_times(report):
    """Times of candidates by key, in us by the config's place in one list; what a config leaves out is its default."""
    keys = load(report)["keys"]
    places, recorded = {}, []
    for key in keys:
        us = {}
        for timed in key["times"]:
            config = json.dumps({field: value for field, value in timed["config"].items() if (field, value) not in UNSAID.items()})
            us[places.setdefault(config, len(places))] = round(timed["median_us"], 1)
        kept = ("name", "direction", "max_seq_len", "bucket", "short_sequences")
        recorded.append({field: key[field] for field in kept if field in key} | {"us": us})
    print(f"{len(keys)} keys, {sum(len(key['us']) for key in recorded)} times of {len(places)} configs")
    return {"configs": [json.loads(config) for config in places], "keys": recorded}, True


def emitted(said):
    """Times that emitted programs printed: a line "KERNEL: N rows, T ms" each."""
    with open(said, encoding="utf-8") as file:
        lines = file.read().splitlines()
    times = dict(match.groups() for line in lines if (match := re.fullmatch(r"(\w+): \d+ rows, ([0-9.]+) ms", line)))
    failed = [line for line in lines if line.endswith(" failed")]
    print(f"{len(times)} of {len(times) + len(failed)} emitted programs ran")
    return {"ms": {kernel: float(time) for kernel, time in times.items()}, "failed": failed}, bool(times) and not failed


def faults(report):
    """GoogleTest's report."""
    tests = [test for suite in load(report)["testsuites"] for test in suite["testsuite"]]
    passed = [test["name"] for test in tests if test["result"] == "COMPLETED" and not test.get("failures")]
    print(f"{len(passed)} of {len(tests)} tests with faulty candidates passed")
    return {"passed": passed, "seconds": {test["name"]: test["time"] for test in tests}}, bool(tests) and len(passed) == len(tests)


def ranks(choices, *of_ranks):
    """Processes with a GPU each: their parts of a tuning, then a run of the frozen choices (its log and its report)."""
    checksum = load(choices)["checksum"]
    tuned, agree, said = [], [], []
    for part, log, report in zip(*[iter(of_ranks)] * 3):
        tuned.append([f"{key['name']} {key['bucket'] or ''}{' small' if key.get('small_batch') else ' short' if key.get('short_sequences') else ''}" for key in load(part)["keys"]])
        runs = load(report)["runs"]
        agree.append(bool(runs) and all(run.get("agrees") for run in runs))
        with open(log, encoding="utf-8") as file:
            said.append(re.findall(r"frozen,.*checksum=([0-9a-f]{64})", file.read()))
    once = [key for part in tuned for key in part]
    good = all(agree) and len(once) == len(set(once)) and all(each == [checksum] for each in said)
    print(f"{len(tuned)} ranks tuned {[len(part) for part in tuned]} keys, {sum(agree)} agree with float64, checksums {said}")
    return {"ranks": len(tuned), "tuned": tuned, "agree": agree, "checksums": said}, good


def profile(report):
    """ncu's CSV of one launch a cell, each after a line "== CELL"."""
    cells = {}
    with open(report, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("== "):
                cell = cells.setdefault(line[3:].strip(), {})
                continue
            row = next(csv.reader([line]), [])
            if len(row) < 15 or not row[0].isdigit():
                continue
            cell["kernel"], metric, value = row[4], row[-3], row[-1].replace(",", "")
            if re.fullmatch(r"[0-9.]+", value):
                cell[metric] = float(value)
    missing = [name for name, cell in cells.items() if not cell]
    print(f"{len(cells) - len(missing)} of {len(cells)} cells were profiled")
    return cells, bool(cells) and not missing


def startup(cold, warm):
    result = {}
    for name, path in (("cold", cold), ("warm", warm)):
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        result[name] = {key: round(statistics.median(row[key] for row in rows), 3) for key in rows[0]}
        result[name]["processes"] = len(rows)
        print(f"{name}: first call {result[name]['first_call_ms']:.1f} ms, launch {result[name]['launch_us']:.2f} us")
    return result, True


def compare(*reports):
    """Reports of bench by two builds in turns, the older one first: median times, and the median of what each run of the newer one
    takes of the run of the older one just before it, since clocks drift."""
    times, environments = {}, []
    for build, paths in enumerate((reports[0::2], reports[1::2])):
        for path in paths:
            report = load(path)
            environments.append(report["environment"]["generator"][:12])
            for row in report["results"]:
                times.setdefault(f"{row['name']} {row['direction']}", ([], []))[build].append(row["median_ms"])
    cells = {}
    for name, (before, after) in times.items():
        ratio = statistics.median(new / old for old, new in zip(before, after))
        cells[name] = {"runs": len(after), "before_ms": round(statistics.median(before), 5),
                       "after_ms": round(statistics.median(after), 5), "ratio": round(ratio, 4)}
    worst = max(cells, key=lambda name: cells[name]["ratio"])
    print(f"{len(cells)} cells, slowest against the older build: {worst}, {cells[worst]['ratio']}")
    return {"generators": [environments[0], environments[-1]], "cells": cells}, cells[worst]["ratio"] <= 1.01


def row_sweep(report):
    """Shares of the copy rate along widths and along numbers of rows: none under half of that of the one before or after it. Fewer
    rows than fill the GPU have no neighbour: a launch's own time decides there."""
    filling = 4096
    shares = {}
    for row in load(report)["results"]:
        kind, number = row["name"].split("-")
        if "median_ms" in row and kind != "production" and not (kind == "rows" and int(number) < filling):
            shares.setdefault((kind, row["direction"]), {})[int(number)] = row["limit_ms"] / row["median_ms"]
    cliffs = []
    for (kind, direction), along in shares.items():
        for number, neighbour in (pair[::way] for pair in itertools.pairwise(sorted(along)) for way in (1, -1)):
            if along[number] < along[neighbour] / 2:
                cliffs.append(f"{kind}-{number} {direction}: {along[number]:.2f} beside {along[neighbour]:.2f} of {neighbour}")
    count = sum(map(len, shares.values()))
    print(f"{count} shapes, {len(cliffs)} under half of a neighbour: {'; '.join(cliffs) or 'none'}")
    return count > 0 and not cliffs


def untuned_of(report):
    """Times of the cost model's choices: of a benchmark before anything was tuned, or of the tuner, beside its winners."""
    if "results" in report:
        return report["results"]
    return [{field: key[field] for field in ("name", "op", "direction", "max_seq_len", "bucket")} |
            {"config": key["heuristic"], "tuned": False, "from": "heuristic", "median_ms": key["heuristic_us"] / 1e3}
            for key in report["keys"] if key.get("heuristic_us")]


def write(path, content):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")


# By name of a step; ping_pong and fused are what is recorded of overrides.
STEPS = {
    "matrix": matrix, "sanitizer": sanitizer, "ping_pong": overridden, "fused": overridden, "random": random,
    "deterministic": deterministic, "emitted": emitted, "tune": tune, "faults": faults, "ranks": ranks, "profile": profile,
    "startup": startup, "compare": compare, "traffic": traffic, "models": traffic, "candidate_times": candidate_times,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--commit", required=True)
    parser.add_argument("--date", required=True)
    parser.add_argument("--device", required=True, help="what `hstujit doctor --json` printed")
    parser.add_argument("step", choices=(*STEPS, *BENCHES))
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    doctor = json.loads(arguments.device)
    *inputs, output = arguments.files
    environment = {
        "date": arguments.date, "commit": arguments.commit, "devices": doctor.get("devices"),
        "driver": doctor.get("driver", {}).get("version"), "nvrtc": doctor.get("nvrtc", {}).get("version"),
        "library": doctor.get("library", {}).get("version"),
    }
    if arguments.step in BENCHES:  # already a report with its environment; tools/bench_table.py reads the one that names no step
        good = arguments.step != "row_sweep" or row_sweep(inputs[0])
        *before, report = map(load, inputs)
        peers = {}
        if arguments.step in WITH_PEERS and "times" in report:
            peers = {"peers": report}
            *before, report = before or [{"environment": environment}]  # peers alone are a report, too
        report["environment"]["commit"] = arguments.commit
        named = {} if arguments.step == "bench" else {"step": arguments.step}
        write(output, named | {"untuned": untuned_of(one) for one in before} | peers | report)
        return 0 if good else 1
    result, good = STEPS[arguments.step](*inputs)
    write(output, {"step": arguments.step, "environment": environment, "result": result})
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
