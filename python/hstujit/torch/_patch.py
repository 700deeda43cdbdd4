"""Replaces operators inside the public HSTU packages."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import threading
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import torch

from .. import errors
from .._words import counted, not_allowed
from ._in_order import written_out
from ._public import PACKAGES, Function, Substitute


@dataclass
class Calls:
    """How many calls of a replaced function an operator here served, and how many it did not, by reason.

    Calls in a compiled graph are not counted, and of threads that call at one time some may be missed.
    """

    ours: int = 0
    theirs: Counter[str] = field(default_factory=Counter)

    def count(self, reason: str) -> None:
        if reason:
            self.theirs[reason] += 1
        else:
            self.ours += 1


@dataclass(frozen=True)
class Patched:
    """Full names of functions that :func:`patch` replaced, and of those that it left, with the reason.

    ``calls`` counts those of each replaced function from then on.
    """

    package: str
    replaced: tuple[str, ...]
    left: dict[str, str]
    calls: dict[str, Calls] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.package}: {counted(len(self.replaced), 'operator')} replaced by hstujit"]
        lines += [f"  replaced {name}" for name in self.replaced]
        lines += [f"  left     {name}: {reason}" for name, reason in self.left.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class _Replacement:
    package: str
    original: Function
    ours: Function
    calls: Calls


_lock = threading.Lock()
_active: list[_Replacement] = []


def patch(package: str, keep: Collection[str] = ()) -> Patched:
    """Makes an installed package call the operators of hstujit.

    Args:
        package: ``"generative_recommenders"`` or ``"tzrec"``.
        keep: names of the package's kernels, such as ``"PYTORCH"``, whose calls stay with it: for comparisons.

    Calls that no operator here serves go to the function that was there: dropout of attention, masks of a tensor, head
    dimensions that are no multiple of 8, data types and devices without kernels.

    Raises:
        hstujit.errors.InvalidArgumentError: another package.
        ModuleNotFoundError: the package is not installed.
    """
    if package not in PACKAGES:
        raise errors.InvalidArgumentError(not_allowed("package", package, PACKAGES))
    importlib.import_module(package)
    modules = {name: _module(f"{package}.{name}") for name in PACKAGES[package]}
    report = Patched(package, (), {})
    replaced: list[str] = []
    host = _has_host_backend()
    with _lock:
        for name, functions in PACKAGES[package].items():
            module = modules[name]
            if module is None:
                report.left.update((f"{package}.{name}.{f}", "there is no such module") for f in functions)
                continue
            for function, original in _public_functions(module):
                full = f"{module.__name__}.{function}"
                calls = next((active.calls for active in _active if original is active.ours), None)
                if calls is None:
                    reason = _differs(original, functions.get(function))
                    if reason:
                        report.left[full] = reason
                        continue
                    calls = Calls()
                    ours = _falling_back(original, functions[function], calls, frozenset(keep), host)
                    _active.append(_Replacement(package, original, ours, calls))
                    _exchange(package, original, ours)
                replaced.append(full)
                report.calls[full] = calls
    return replace(report, replaced=tuple(replaced))


def unpatch(package: str | None = None) -> tuple[str, ...]:
    """Puts back what :func:`patch` replaced, of one package or of all. Returns the names of those functions."""
    back = []
    with _lock:
        for replacement in [active for active in _active if package in (None, active.package)]:
            _exchange(replacement.package, replacement.ours, replacement.original)
            _active.remove(replacement)
            back.append(f"{replacement.original.__module__}.{replacement.original.__name__}")
    return tuple(back)


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            return None
        raise


def _public_functions(module: ModuleType) -> list[tuple[str, Function]]:
    """Those that the module defines itself, and ours in place of such."""
    return [
        (name, value)
        for name, value in sorted(vars(module).items())
        if inspect.isfunction(value) and not name.startswith("_") and value.__module__ == module.__name__
    ]


def _differs(original: Function, substitute: Substitute | None) -> str:
    """Why a call of the original may mean something else with ours; "" where it does not."""
    if substitute is None:
        return "hstujit has no such operator"
    ours = inspect.signature(substitute.function).parameters
    known = list(ours)
    parameters = inspect.signature(original).parameters
    names = list(parameters)
    unknown = [name for name in names if name not in known]
    if unknown:
        return f"it takes {', '.join(unknown)}, which hstujit does not know"
    missing = [name for name in known if name not in names and ours[name].default is inspect.Parameter.empty]
    if missing:
        return f"it does not take {', '.join(missing)}"
    required = [name for name in names if parameters[name].default is inspect.Parameter.empty]
    if required != [name for name in known if name in required]:
        return f"it takes its arguments in another order: {', '.join(names)}"
    return ""


def _falling_back(
    original: Function, substitute: Substitute, calls: Calls, keep: frozenset[str], host: bool
) -> Function:
    """A function with the original's arguments. It calls the original where ours has no kernel."""

    def refuses(given: dict[str, Any]) -> str:
        reason = _kept(given, keep) or _without_kernels(given, host) or substitute.refuses(given)
        if not torch.compiler.is_compiling():
            calls.count(reason)
        return reason

    body = "    if refuses({given}):\n        return original({keywords})\n    return ours({keywords})\n"
    scope = {"original": original, "ours": substitute.function, "refuses": refuses}
    parameters = inspect.signature(original).parameters.values()
    return functools.wraps(original)(written_out("call", parameters, body, scope))


def _kept(given: dict[str, Any], keep: frozenset[str]) -> str:
    name = getattr(given.get("kernel"), "name", None)
    return f"kernel {name} is kept" if keep and name in keep else ""


def _without_kernels(given: dict[str, Any], host: bool) -> str:
    for value in given.values():
        if isinstance(value, torch.Tensor):
            if not (value.is_cuda or (host and value.device.type == "cpu")):
                return "a device without kernels"
            if value.dtype == torch.float64:
                return "fp64"
    return ""


def _has_host_backend() -> bool:
    try:
        torch.ops.hstujit.complete_cumsum(torch.ones(1, dtype=torch.int64))
    except errors.Error:
        return False
    return True


def _exchange(package: str, old: Function, new: Function) -> None:
    """In every module that has the function under some name: modules import functions by name."""
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            for attribute, value in list(vars(module).items()):
                if value is old:
                    setattr(module, attribute, new)


__all__ = ["Calls", "Patched", "patch", "unpatch"]
