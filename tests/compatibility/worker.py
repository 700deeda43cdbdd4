"""One process of run.py: lists the tests of a package, or runs one with ``hstujit.torch.patch`` in place."""

import argparse
import importlib
import json
import pathlib
import re
import sys
import time
import traceback
import unittest

import hypothesis
import stand_ins
import torch
from packages import PACKAGES, Package

import hstujit.torch


class OnCpu(torch.overrides.TorchFunctionMode):
    """Makes on the CPU what is asked of a GPU."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def moved(value):
            is_gpu = isinstance(value, torch.device) and value.type == "cuda"
            return torch.device("cpu") if is_gpu or (isinstance(value, str) and value == "cuda") else value

        named = {name: moved(value) for name, value in (kwargs or {}).items()}
        return function(*map(moved, args), **named)


def limit_examples(most: int | None, exactly: int | None) -> None:
    """Every test has the examples that it asks for, or so many; a failure is not made smaller, which takes long.

    With ``exactly`` the examples of a test are the same in every process.
    """
    original, phases = hypothesis.settings.__init__, hypothesis.Phase

    def init(self, *args, **kwargs):
        if exactly is not None and "max_examples" in kwargs:
            kwargs.update(max_examples=exactly, derandomize=True, suppress_health_check=list(hypothesis.HealthCheck))
        if most is not None and isinstance(kwargs.get("max_examples"), int):
            kwargs["max_examples"] = min(most, kwargs["max_examples"])
        kwargs.setdefault("phases", (phases.explicit, phases.generate))
        kwargs.setdefault("database", None)
        original(self, *args, **kwargs)

    hypothesis.settings.__init__ = init


def prepare(
    package: Package, checkout: pathlib.Path, on_cpu: bool, as_it_is: bool
) -> tuple[list[str], hstujit.torch.Patched]:
    sys.path.insert(0, str(checkout))
    if package.name == "tzrec":
        stand_ins.without_init(package.name, checkout)
    added = stand_ins.add_absent(package.absent, package.name) + stand_ins.add_fbgemm()
    if not torch.cuda.is_available():  # the tests ask while they are imported
        torch.cuda.get_device_capability = lambda *arguments: (9, 0)
    if as_it_is:
        return added, hstujit.torch.Patched(package.name, (), {})
    patched = hstujit.torch.patch(package.name, keep=("PYTORCH",))
    if on_cpu:
        pretend_gpu(package)
    return added, patched


def pretend_gpu(package: Package) -> None:
    """No test is skipped, and calls that hstujit does not serve get the package's PyTorch kernels."""
    importlib.import_module(package.flags)
    for module in [module for name, module in sys.modules.items() if name.startswith(package.name)]:
        for name in ("gpu_unavailable", "nv_gpu_unavailable"):
            if hasattr(module, name):
                setattr(module, name, (False, ""))
    for active in hstujit.torch._patch._active:
        scope, original = active.ours.__globals__, active.original
        kernel = scope.get("default_kernel")
        if kernel is not None:
            scope["original"] = _with_kernel(original, type(kernel).PYTORCH)


def _with_kernel(original, kernel):
    return lambda **arguments: original(**{**arguments, "kernel": kernel})


def load(package: Package):
    """Tests by name: file, class and method. A file that cannot be imported is one, with its exception."""
    for file in package.files:
        module = file.removesuffix(".py").replace("/", ".")
        try:
            imported = importlib.import_module(module)
        except Exception as error:  # noqa: BLE001  whatever it is, it is the result
            yield file, error
            continue
        for case in unittest.defaultTestLoader.loadTestsFromModule(imported):
            for test in case:
                yield f"{file}::{type(test).__name__}.{test._testMethodName}", test


def last_error(trace: str) -> str:
    """The exception of a traceback and what follows it, without the files that it went through."""
    lines = trace.rstrip().splitlines()
    begins = [i for i, line in enumerate(lines) if re.match(r"[\w.]+(Error|Exception|Failed)\b", line)]
    return "\n".join(lines[begins[-1] :] if begins else lines[-5:])


def counts(patched: hstujit.torch.Patched) -> dict:
    """By function: calls that were ours, that asked for the package's PyTorch kernel, and others by reason."""
    found = {}
    for name, calls in patched.calls.items():
        theirs = dict(calls.theirs)
        kept = theirs.pop("kernel PYTORCH is kept", 0)
        if calls.ours or kept or theirs:
            found[name] = {"ours": calls.ours, "reference": kept, "fell_back": theirs}
    return found


class Examples:
    """Goes on after an example that fails, and draws the same numbers for each example in every process."""

    def __init__(self, test: unittest.TestCase) -> None:
        self.count, self.failures = 0, []
        handle = getattr(type(test), test._testMethodName).hypothesis
        body = handle.inner_test

        def recorded(*args, **kwargs):
            torch.manual_seed(self.count)
            self.count += 1
            try:
                body(*args, **kwargs)
            except AssertionError as error:
                self.failures.append({"example": str(kwargs), "reason": str(error)[-1000:]})

        handle.inner_test = recorded


def run(test, patched: hstujit.torch.Patched, on_cpu: bool, every_example: bool) -> dict:
    torch.manual_seed(0)
    result = unittest.TestResult()
    examples = Examples(test) if every_example else None
    begin = time.monotonic()
    if on_cpu:
        with OnCpu():
            test.run(result)
    else:
        test.run(result)
    found = {"seconds": round(time.monotonic() - begin, 1), "calls": counts(patched)}
    if result.skipped:
        return {"result": "skipped", "reason": result.skipped[0][1], **found}
    problems = [last_error(text) for _, text in result.failures + result.errors]
    if examples is not None:
        found.update(examples=examples.count, failures=examples.failures)
        problems += [f"{failure['example']}: {failure['reason']}" for failure in examples.failures]
    return {"result": "failed" if problems else "passed", "reason": "\n".join(problems)[-3000:], **found}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", required=True)
    parser.add_argument("--checkout", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--test")
    parser.add_argument("--max-examples", type=int)
    parser.add_argument("--every-example", type=int)
    parser.add_argument("--on-cpu", action="store_true")
    parser.add_argument("--unpatched", action="store_true")
    given = parser.parse_args()
    package = PACKAGES[given.package]
    limit_examples(given.max_examples, given.every_example)
    added, patched = prepare(package, given.checkout.resolve(), given.on_cpu, given.unpatched)
    tests = dict(load(package))
    if given.test is None:
        broken = {
            name: "".join(traceback.format_exception(t))[-3000:]
            for name, t in tests.items()
            if isinstance(t, Exception)
        }
        answer = {
            "tests": list(tests),
            "broken": broken,
            "replaced": list(patched.replaced),
            "left": patched.left,
            "stand_ins": added,
        }
    else:
        answer = run(tests[given.test], patched, given.on_cpu, given.every_example is not None)
    given.out.write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
