"""Replaces operators inside the public HSTU packages."""

from __future__ import annotations

import enum
import importlib
import inspect
import sys
import threading
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from .. import errors
from .._words import not_allowed, shown
from ._fallback import Calls, falling_back, has_host_backend
from ._public import PACKAGES, Function, Substitute


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
        lines = [f"{self.package}: {len(self.replaced)} operators replaced by hstujit"]
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
_kept: dict[str, set[str]] = {package: set() for package in PACKAGES}


def patch(package: str, keep: str | enum.Enum | Collection[str | enum.Enum] = ()) -> Patched:
    """Makes an installed package call the operators of hstujit.

    Args:
        package: ``"generative_recommenders"`` or ``"tzrec"``.
        keep: kernels of the package, such as ``"PYTORCH"`` or the member of its enum, whose calls stay with it: for
            comparisons. One, or several. A second call replaces those of the first.

    Calls that no operator here serves go to the function that was there (docs/pytorch.md has a list). Either all
    functions are replaced that can be, or an error is raised and none is.

    Raises:
        hstujit.errors.InvalidArgumentError: another package, or a kernel that it does not have.
        hstujit.errors.UnsupportedError: nothing of it can be replaced.
        ModuleNotFoundError: the package is not installed.
    """
    _check_package(package)
    names = _names_of(keep)
    importlib.import_module(package)
    modules = {name: _module(f"{package}.{name}") for name in PACKAGES[package]}
    report = Patched(package, (), {})
    host = has_host_backend()
    with _lock:
        made: list[_Replacement] = []
        kernels: set[str] = set()
        for name, substitutes in PACKAGES[package].items():
            module = modules[name]
            if module is None:
                report.left.update((f"{package}.{name}.{f}", "there is no such module") for f in substitutes)
                continue
            for function, original in _public_functions(module):
                kernels |= _kernels_of(original)
                full = f"{module.__name__}.{function}"
                calls = next((active.calls for active in _active if original is active.ours), None)
                if calls is None:
                    reason = _differs(original, substitutes.get(function))
                    if reason:
                        report.left[full] = reason
                        continue
                    calls = Calls()
                    ours = falling_back(original, substitutes[function], calls, _kept[package], host)
                    made.append(_Replacement(package, original, ours, calls))
                report.calls[full] = calls
        if not report.calls:
            left = "; ".join(f"{name}: {reason}" for name, reason in report.left.items())
            raise errors.UnsupportedError(
                f"package is {shown(package)}, which has none of the functions that are replaced ({left})"
            )
        for kernel in sorted(names - kernels):
            raise errors.InvalidArgumentError(not_allowed("keep", kernel, sorted(kernels)))
        _exchange({id(new.original): new.ours for new in made})
        _active.extend(made)
        _kept[package].intersection_update(names)
        _kept[package].update(names)
    return replace(report, replaced=tuple(report.calls))


def unpatch(package: str | None = None) -> tuple[str, ...]:
    """Puts back what :func:`patch` replaced, of one package or of all. Returns the names of those functions.

    Raises:
        hstujit.errors.InvalidArgumentError: another package.
    """
    if package is not None:
        _check_package(package)
    back = []
    with _lock:
        for name in PACKAGES:
            ours = [active for active in _active if active.package == name and package in (None, name)]
            _exchange({id(active.ours): active.original for active in ours})
            for active in ours:
                _active.remove(active)
                back.append(f"{active.original.__module__}.{active.original.__name__}")
    return tuple(back)


def _check_package(package: Any) -> None:
    if not isinstance(package, str) or package not in PACKAGES:
        raise errors.InvalidArgumentError(not_allowed("package", package, PACKAGES))


def _names_of(keep: Any) -> frozenset[str]:
    """Names of kernels: of one or of several, by name or as members of an enum."""
    given = [keep] if isinstance(keep, (str, enum.Enum)) else keep
    if not isinstance(given, Collection) or not all(isinstance(kernel, (str, enum.Enum)) for kernel in given):
        raise errors.InvalidArgumentError(
            f"keep is {shown(keep)}; it must be names of kernels, such as 'PYTORCH', or members of the package's enum"
        )
    return frozenset(kernel.name if isinstance(kernel, enum.Enum) else kernel for kernel in given)


def _kernels_of(function: Function) -> set[str]:
    """Names of those that the package's function may be asked for, where it has an enum of them."""
    kernel = inspect.signature(function).parameters.get("kernel")
    return set(type(kernel.default).__members__) if kernel and isinstance(kernel.default, enum.Enum) else set()


def _module(name: str) -> ModuleType | None:
    """None where it, or a parent of it, is not there."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            return None
        raise
    return module if isinstance(module, ModuleType) else None


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


def _exchange(functions: dict[int, Function]) -> None:
    """Each function, by its id, for another one, in every module that has it: modules import functions by name.

    A model's modules do, too, whatever they are called.

    All of them, or none where a module does not let itself be changed. Python takes None, and anything else, for a
    module that is imported.
    """
    ours = __package__.partition(".")[0]
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] != ours]
    done: list[tuple[ModuleType, str, Function]] = []
    try:
        for module in filter(inspect.ismodule, modules):
            for attribute, value in list(vars(module).items()):
                if id(value) in functions:
                    setattr(module, attribute, functions[id(value)])
                    done.append((module, attribute, value))
    except BaseException:
        for module, attribute, value in done:
            setattr(module, attribute, value)
        raise
