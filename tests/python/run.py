#!/usr/bin/env python3
"""Runs tests of the Python package.

    tests/python/run.py [NAME...]     test_NAME.py of this folder, all of them if none is named

Exits with 77, which CTest reads as skipped, where numpy is missing or every test was skipped. With
HSTUJIT_TEST_TORCH=1, as in CI, what is missing is a failure, and so is a skipped test that needs no GPU and no JAX.
"""

import importlib.util
import os
import pathlib
import sys
import time
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))
from kept import kept_folder  # noqa: E402

SKIPPED = 77
OPTIONAL = ("there is no GPU", "JAX is not installed")
SHOWN = 15  # of the tests that take longest


class TimedResult(unittest.TextTestResult):
    """Knows how long each test took."""

    def startTest(self, test):
        super().startTest(test)
        self.began, self.took = time.monotonic(), getattr(self, "took", {})

    def stopTest(self, test):
        self.took[test.id()] = time.monotonic() - self.began
        super().stopTest(test)


def main(names):
    strict = os.environ.get("HSTUJIT_TEST_TORCH") == "1"
    needed = ["numpy", "torch"] if strict else [] if {*names} in ({"wheel"}, {"pip"}) else ["numpy"]
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        print(f"{' and '.join(missing)} cannot be imported by {sys.executable}: the tests are skipped")
        return 1 if strict else SKIPPED
    # Processes run beside each other, and waiting threads of OpenMP spin.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for variable, name in ("HSTUJIT_HOST_CACHE", "host"), ("TORCHINDUCTOR_CACHE_DIR", "inductor"):
        if kept := kept_folder(name):
            os.environ.setdefault(variable, kept)
    sys.path.insert(0, str(FOLDER))
    names = [f"test_{name}" for name in names] or sorted(path.stem for path in FOLDER.glob("test_*.py"))
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(verbosity=2, buffer=False, resultclass=TimedResult).run(suite)
    slowest = sorted(getattr(result, "took", {}).items(), key=lambda test: -test[1])[:SHOWN]
    print("\n".join(["slowest:", *(f"{took:7.1f} s {test}" for test, took in slowest)]))
    unwanted = [f"{test}: {reason}" for test, reason in result.skipped if not reason.startswith(OPTIONAL)]
    if strict and unwanted:
        print("\n".join(["skipped, though everything is said to be there:", *unwanted]))
        return 1
    if not result.wasSuccessful() or result.testsRun == 0:
        return 1
    return SKIPPED if len(result.skipped) == result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
