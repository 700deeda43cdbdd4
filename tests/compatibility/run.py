#!/usr/bin/env python3
"""Runs the operator tests of the public HSTU packages with ``hstujit.torch.patch`` in place (docs/compatibility.md).

    tests/compatibility/run.py --json results.json                  # clones the packages
    tests/compatibility/run.py --checkout tzrec=DIR --json results.json
    tests/compatibility/run.py --json results.json --markdown       # prints the table of results that are there

Each test runs in a process of its own, so that one that breaks the GPU's context, or hangs, is one that failed.
Results of a later run replace those of the same tests in the file.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

from packages import PACKAGES, Package

HERE = pathlib.Path(__file__).resolve().parent
MUCH_MEMORY = re.compile("large|long")


def checkout_of(package: Package, given: dict[str, pathlib.Path], folder: pathlib.Path) -> pathlib.Path:
    """A folder that was named, or a clone of the commit that is tested."""
    if package.name in given:
        return given[package.name].resolve()
    clone = folder / package.name
    if not clone.exists():
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", package.url, str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", package.commit], check=True)
    return clone.resolve()


def commit_of(checkout: pathlib.Path, package: Package) -> str:
    """Commit of a checkout; a copy without a repository counts as the tested version."""
    asked = ["git", "-C", str(checkout), "rev-parse", "--show-prefix", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    lines = done.stdout.split("\n")
    return lines[1] if done.returncode == 0 and lines[0] == "" else f"{package.commit} (not checked)"


class Workers:
    """Processes of worker.py, in an empty folder, since tests write some."""

    def __init__(self, given: argparse.Namespace, scratch: str) -> None:
        self.given, self.scratch = given, scratch
        paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def run(self, package: Package, checkout: pathlib.Path, test: str | None) -> dict:
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            out = pathlib.Path(folder) / "answer.json"
            command = [sys.executable, str(HERE / "worker.py"), "--package", package.name]
            command += ["--checkout", str(checkout), "--out", str(out)]
            command += ["--test", test] if test else []
            command += ["--on-cpu"] if self.given.on_cpu else []
            command += ["--unpatched"] if self.given.unpatched else []
            command += ["--max-examples", str(self.given.max_examples)] if self.given.max_examples else []
            command += ["--every-example", str(self.given.every_example)] if self.given.every_example else []
            try:
                done = subprocess.run(
                    command,
                    cwd=folder,
                    env=self.environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=self.given.timeout,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return {"result": "failed", "reason": f"it took longer than {self.given.timeout} s", "calls": {}}
            if out.exists():
                return json.loads(out.read_text())
            return {"result": "failed", "reason": f"exit status {done.returncode}: {done.stdout[-3000:]}", "calls": {}}


def run_package(package: Package, checkout: pathlib.Path, workers: Workers, before: dict) -> dict:
    given = workers.given
    listed = workers.run(package, checkout, None)
    if "tests" not in listed:
        raise SystemExit(f"{package.name}: its tests cannot be listed: {listed['reason']}")
    results = dict(before.get("results", {}))
    chosen = []
    for test in listed["tests"]:
        reason = package.reason_to_leave_out(test)
        if test in listed["broken"]:
            results[test] = {"result": "failed", "reason": listed["broken"][test], "calls": {}}
        elif reason:
            results[test] = {"result": "left out", "reason": reason, "calls": {}}
        elif re.search(given.only, test):
            chosen.append(test)
    if not (given.on_cpu or given.report["environment"]["gpu"]):
        skipped = {"result": "skipped", "reason": "there is no GPU", "calls": {}}
        results.update((test, skipped) for test in chosen)
        chosen = []

    def record(test: str) -> None:
        results[test] = {**workers.run(package, checkout, test), "max_examples": given.max_examples}
        totals = summary(results[test])
        print(f"{results[test]['result']:8} {totals} {package.name} {test}", flush=True)
        given.json.write_text(json.dumps(given.report, indent=1))

    found = {
        "commit": commit_of(checkout, package),
        "replaced": listed["replaced"],
        "left": listed["left"],
        "stand_ins": listed["stand_ins"],
        "not_run": dict(package.not_run),
        "results": results,
    }
    given.report["packages"][package.name] = found
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(record, [test for test in chosen if not MUCH_MEMORY.search(test)]))
    for test in chosen:
        if MUCH_MEMORY.search(test):
            record(test)
    return found


def summary(result: dict) -> str:
    calls = result["calls"].values()
    ours, reference = (sum(function[what] for function in calls) for what in ("ours", "reference"))
    failed = f", {len(result['failures'])} of {result['examples']} failed" if "examples" in result else ""
    return f"ours {ours}, fell back {fell_back(result)}, reference {reference}{failed}"


def fell_back(result: dict) -> int:
    return sum(sum(function["fell_back"].values()) for function in result["calls"].values())


def environment() -> dict:
    import torch

    is_gpu = torch.cuda.is_available()
    asked = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "commit": commit or os.environ.get("HSTUJIT_COMMIT", "unknown"),
        "gpu": torch.cuda.get_device_name() if is_gpu else None,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def markdown(report: dict) -> str:
    lines = []
    for name, package in report["packages"].items():
        lines += [f"### {name}, {package['commit'][:12]}", "", "| test | result | ours | fell back | why |"]
        lines += ["|---|---|--:|--:|---|"]
        for test, result in package["results"].items():
            file, _, method = test.partition("::")
            reasons = {reason for calls in result["calls"].values() for reason in calls["fell_back"]}
            if result["result"] in ("left out", "skipped"):
                reasons = {result["reason"]}
            ours = sum(calls["ours"] for calls in result["calls"].values())
            shown = f"`{pathlib.PurePath(file).name}` {method.rpartition('.')[2]}"
            why = "; ".join(sorted(reasons))
            lines += [f"| {shown} | {result['result']} | {ours} | {fell_back(result)} | {why} |"]
        lines += [f"| `{file}` | left out | 0 | 0 | {reason} |" for file, reason in package["not_run"].items()]
        lines += [""]
    return "\n".join(lines)


def pair(text: str) -> tuple[str, pathlib.Path]:
    name, _, folder = text.partition("=")
    if name not in PACKAGES or not folder:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=DIR with one of {', '.join(PACKAGES)}")
    return name, pathlib.Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, required=True, help="the file of results")
    parser.add_argument("--checkout", type=pair, action="append", default=[], metavar="NAME=DIR")
    parser.add_argument("--clones", type=pathlib.Path, default=pathlib.Path("build/compatibility"))
    parser.add_argument("--package", choices=PACKAGES, action="append", help="these alone")
    parser.add_argument("--only", default="", metavar="REGEX", help="tests whose name has it")
    parser.add_argument("--max-examples", type=int, help="of each test at most; without it what the test says")
    parser.add_argument(
        "--every-example",
        type=int,
        metavar="N",
        help="N examples of each test, the same ones in every run, of which all are tried when one fails",
    )
    parser.add_argument("--jobs", type=int, default=4, help="tests at one time")
    parser.add_argument("--timeout", type=int, default=1800, help="seconds of a test")
    parser.add_argument("--on-cpu", action="store_true", help="pretends that there is a GPU: the host backend computes")
    parser.add_argument("--unpatched", action="store_true", help="the package as it is, to compare with")
    parser.add_argument("--markdown", action="store_true", help="runs nothing, and prints what the file has as a table")
    given = parser.parse_args()
    report = json.loads(given.json.read_text()) if given.json.exists() else {"packages": {}}
    if given.markdown:
        print(markdown(report))
        return 0
    report.update(step="compatibility", environment=environment(), patched=not given.unpatched)
    given.report, failed = report, 0
    with tempfile.TemporaryDirectory() as scratch:
        workers = Workers(given, scratch)
        for name in given.package or PACKAGES:
            checkout = checkout_of(PACKAGES[name], dict(given.checkout), given.clones)
            found = run_package(PACKAGES[name], checkout, workers, report["packages"].get(name, {}))
            results = [result["result"] for result in found["results"].values()]
            print(name, {what: results.count(what) for what in sorted(set(results))})
            failed += results.count("failed")
    given.json.write_text(json.dumps(report, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
