#!/usr/bin/env python3
"""Parts of a report of hstujit doctor that bench/record.py takes."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCTOR = {"library": {"version": "1.2.3", "generator": "ab"}, "driver": {"ok": True, "version": 13000},
          "nvrtc": {"ok": True, "version": "13.0"}, "devices": [{"name": "GPU"}]}


def write(folder, contents):
    paths = [pathlib.Path(folder, str(i)) for i in range(len(contents))]
    for path, content in zip(paths, contents):
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return paths


def recorded(step, *contents):
    """The exit code of bench/record.py for these files, what it printed and what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "out.json")
        process = subprocess.run([sys.executable, ROOT / "bench/record.py", "--commit", "c", "--date", "d", "--device", json.dumps(DOCTOR),
                                  step, *write(folder, contents), output], check=False, stdout=subprocess.PIPE, text=True)
        return process.returncode, process.stdout, json.loads(output.read_text(encoding="utf-8"))


TIMES = '{"first_call_ms": 1.0, "launch_us": 2.0}\n'
code, _, written = recorded("startup", TIMES, TIMES)
environment = written["environment"]
if code != 0:
    sys.exit(f"exit {code} for start-up times")

expected = {"date": "d", "commit": "c", "devices": [{"name": "GPU"}], "driver": 13000, "nvrtc": "13.0", "library": "1.2.3"}
if environment != expected:
    sys.exit(f"environment is {environment}; expected {expected}")

# A step under an override: instances that it does not fit are named and are no failure; a wrong one is.
RIGHT = {"name": "causal-bf16-64x64", "error": 0.1, "bound": 1.0, "agrees": True}
REFUSED = {"name": "none-bf16-32x32", "failure": {"code": "unsupported", "message": "ping-pong needs two consumers"}}
WRONG = {"name": "none-bf16-64x64", "error": 2.0, "bound": 1.0, "agrees": False}
BROKEN = {"name": "none-bf16-96x96", "failure": {"code": "driver_error", "message": "a launch failed"}}
CLEAN = "  causal-bf16-64x64  agrees\n========= ERROR SUMMARY: 0 errors\n"
RACE = "  causal-bf16-64x64  agrees\n========= RACECHECK SUMMARY: 2 hazards displayed\n"


def overridden(runs, racecheck, step="ping_pong"):
    code, said, written = recorded(step, {"runs": runs}, CLEAN, racecheck)
    return code, said, written["result"]


for step in ("ping_pong", "fused"):
    code, said, result = overridden([RIGHT, REFUSED], CLEAN, step)
    if code != 0 or "refused: ping-pong needs two consumers" not in said or result["instances"] != 1 \
            or result["refused"] != ["none-bf16-32x32"]:
        sys.exit(f"a refused instance of {step}: exit {code}, {said!r}, {result}")
for runs, racecheck in (([RIGHT, WRONG], CLEAN), ([RIGHT, BROKEN], CLEAN), ([REFUSED], CLEAN), ([RIGHT], RACE)):
    code, said, result = overridden(runs, racecheck)
    if code != 1:
        sys.exit(f"exit {code} for {runs} and {racecheck!r}: {said!r}")

# Two tunings of one key: what they chose is compared by the times of either run.
sys.path.insert(0, str(ROOT / "bench"))
import record  # noqa: E402


def tuned(winner, a_us, b_us):
    return {"name": "x", "bucket": 256, "seconds": 1.5, "winner": {"stages": winner},
            "times": [{"config": {"stages": 2}, "median_us": a_us}, {"config": {"stages": 3}, "median_us": b_us}]}


def run(step, *contents):
    with tempfile.TemporaryDirectory() as folder:
        return record.STEPS[step](*write(folder, contents))


result, passed = run("tune", {"keys": [tuned(2, 100, 101)]})
if "second_run_differs_by" in result or not passed:
    sys.exit(f"one tuning: {result}, {passed}")
# Both directions of an instance have its name, and nothing is compared where there is one run.
result, passed = run("tune", {"keys": [{**tuned(2, 100, 101), "direction": "forward"}, {**tuned(4, 50, 60), "direction": "backward"}]})
if not passed or [key["direction"] for key in result["keys"]] != ["forward", "backward"]:
    sys.exit(f"one tuning of two directions: {result}, {passed}")
for first, second, expected, good in ((tuned(2, 100, 101), tuned(2, 100, 90), 0, True),
                                      (tuned(2, 100, 101), tuned(3, 101, 100), 0.01, True),
                                      (tuned(2, 100, 104), tuned(3, 100.5, 100), 0.04, False)):
    result, passed = run("tune", {"keys": [first]}, {"keys": [second]})
    if abs(result["second_run_differs_by"] - expected) > 1e-9 or passed != good:
        sys.exit(f"two tunings: {result}, {passed}; expected {expected}, {good}")

# Launches compared bitwise: of deterministic kernels one that differs is a failure, and so is an instance that was not repeated.
EQUAL = RIGHT | {"repeats": 200, "repeats_equal": 200}
UNEQUAL = RIGHT | {"repeats": 200, "repeats_equal": 197, "repeats_differ": {"dq": 3}}
for restricted, free, good in (([EQUAL], [UNEQUAL, REFUSED], True), ([EQUAL], [EQUAL], True), ([UNEQUAL], [UNEQUAL], False),
                               ([EQUAL, RIGHT], [EQUAL], False), ([EQUAL, WRONG], [EQUAL], False), ([], [EQUAL], False)):
    result, passed = run("deterministic", {"runs": restricted}, {"runs": free})
    if passed != good:
        sys.exit(f"repeated launches: {restricted}, {free}: {passed}; expected {good}")
result, _ = run("deterministic", {"runs": [EQUAL]}, {"runs": [UNEQUAL, REFUSED]})
if result["repeated"] != {"instances": 1, "launches": 200, "equal": 1, "different": {}} or result["not_deterministic"] != {
        "instances": 1, "launches": 200, "equal": 0, "different": {RIGHT["name"]: {"dq": 3}}, "refused": [REFUSED["name"]]}:
    sys.exit(f"repeated launches: {result}")

# Random instances: a wrong one is recorded with what it takes to run it again, and a portion without a report is a failure.
CONFIG = {"ops": [{"name": "causal-bf16-silu-forward-7_0", "attn_dim": 8}]}
RAN = {"name": "causal-bf16-silu-forward-7_0", "direction": "forward", "error": 0.5, "bound": 1.0, "agrees": True}
FAR = RAN | {"error": 3.0, "agrees": False, "failure": {"code": "check_failed", "message": "out differs"}}
for first, second, good in (({"seed": 7, "runs": [RAN]}, {"seed": 8, "runs": [RAN]}, True),
                            ({"seed": 7, "runs": [RAN]}, {"seed": 8, "runs": [FAR]}, False),
                            ({"seed": 7, "runs": [RAN]}, "", False), ("", "", False)):
    result, passed = run("random", CONFIG, first, CONFIG, second)
    if passed != good:
        sys.exit(f"random instances: {result}, {passed}; expected {good}")
result, _ = run("random", CONFIG, {"seed": 7, "runs": [RAN, FAR]})
if result["wrong"] != [{"seed": 7, "direction": "forward", "message": "out differs", "instance": CONFIG["ops"][0]}] \
        or result["seeds"] != [7] or result["worst_share_of_bound"] != {"bf16": 3.0, "causal": 3.0, "forward": 3.0, "silu": 3.0}:
    sys.exit(f"random instances: {result}")

# A bucket whose small batches have a kernel of their own has two keys.
both = [tuned(2, 100, 150), {**tuned(3, 20, 10), "small_batch": True}]
result, passed = run("tune", {"keys": both}, {"keys": both[::-1]})
if result["second_run_differs_by"] != 0 or not passed or [key.get("small_batch") for key in result["keys"]] != [None, True]:
    sys.exit(f"two keys of a bucket: {result}, {passed}")

# A benchmark's untuned times: of a benchmark, or of the tuner that made the records of the other one.
TIMED = {"environment": {}, "results": [{"name": "x", "median_ms": 0.5}]}
KEY = {"name": "x", "op": "silu", "direction": "forward", "max_seq_len": None, "bucket": None, "heuristic": {"warps": 4},
       "heuristic_us": 600.0, "winner_us": 500.0}
for before, untuned in ((TIMED, TIMED["results"]),
                        ({"keys": [KEY, {"name": "failed"}]},
                         [{"name": "x", "op": "silu", "direction": "forward", "max_seq_len": None, "bucket": None, "config": {"warps": 4},
                           "tuned": False, "from": "heuristic", "median_ms": 0.6}])):
    code, _, written = recorded("rows", before, TIMED)
    if code != 0 or written["untuned"] != untuned or written["results"] != TIMED["results"]:
        sys.exit(f"untuned: {written}")

# Ranks: disjoint parts, right results and one checksum.
LINE = f"hstujit,dispatch,frozen,file=x,checksum={'a' * 64},choices=3\n"
PART = {"keys": [{"name": "x", "bucket": 256}]}
OTHER = {"keys": [{"name": "x", "bucket": 512}]}
AGREES, DIFFERS = {"runs": [RIGHT]}, {"runs": [WRONG]}
for parts, logs, runs, good in (((PART, OTHER), (LINE, LINE), (AGREES, AGREES), True),
                                ((PART, PART), (LINE, LINE), (AGREES, AGREES), False),
                                ((PART, OTHER), (LINE, LINE.replace("a", "b")), (AGREES, AGREES), False),
                                ((PART, OTHER), (LINE, ""), (AGREES, AGREES), False),
                                ((PART, OTHER), (LINE, LINE), (AGREES, DIFFERS), False)):
    result, passed = run("ranks", {"checksum": "a" * 64}, parts[0], logs[0], runs[0], parts[1], logs[1], runs[1])
    if passed != good:
        sys.exit(f"ranks: {result}; expected {good}")

# Faulty candidates: a test that was skipped has shown nothing.
for outcome, good in (({"result": "COMPLETED"}, True), ({"result": "SKIPPED"}, False),
                      ({"result": "COMPLETED", "failures": [{"failure": "no"}]}, False)):
    report = {"testsuites": [{"testsuite": [{"name": "x", "time": "1s", **outcome}]}]}
    if run("faults", report)[1] != good:
        sys.exit(f"faults: {report}; expected {good}")

# Programs that ran, with their times; one that did not, and none at all, are failures.
code, _, written = recorded("emitted", "a_kernel: 2048 rows, 0.125 ms\n")
if (code, written["result"]) != (0, {"ms": {"a_kernel": 0.125}, "failed": []}):
    sys.exit("a program that ran is not recorded")
for lines in ("a_kernel: 2048 rows, 0.125 ms\nb_main.cu failed\n", ""):
    if recorded("emitted", lines)[0] == 0:
        sys.exit("a program that failed is no failure")

# Each step of run_gpu.sh is in one of its two lists and the other way round; one in none of them is refused.
script = (ROOT / "bench/run_gpu.sh").read_text(encoding="utf-8").replace("\\\n", "")
lists = [name for steps in re.findall(r'^(?:default|other)_steps="(.*)"$', script, re.M) for name in steps.split()]
if not lists or sorted(lists) != sorted(set(re.findall(r"^if step (\w+); then$", script, re.M))):
    sys.exit(f"steps of run_gpu.sh: {lists}")
process = subprocess.run([ROOT / "bench/run_gpu.sh", "-s", "matrices"], check=False, stderr=subprocess.PIPE, text=True)
if (process.returncode, process.stderr) != (2, "matrices is no step\n"):
    sys.exit(f"a step that there is not: exit {process.returncode}, {process.stderr!r}")
