"""Replaces operators inside the public HSTU packages."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from .. import errors
from . import functional

Function = Callable[..., Any]


def _concat_with_length(max_seq_len: int, *arguments: Any, **keywords: Any) -> torch.Tensor:
    return functional.concat_2D_jagged(*arguments, **keywords)


def _split_l2(
    max_seq_len: int,
    x: torch.Tensor,
    prefix_offsets: torch.Tensor,
    l2_offsets: torch.Tensor,
    contextual_seq_len: int,
    kernel: Any = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    return functional.split_2D_jagged(
        max_seq_len, x, offsets_left=prefix_offsets, offsets_right=l2_offsets, n_prefix_to_right=contextual_seq_len
    )


def _concat_l2(
    max_prefix_len: int,
    prefix_x: torch.Tensor,
    prefix_offsets: torch.Tensor,
    max_l2_len: int,
    l2_x: torch.Tensor,
    l2_offsets: torch.Tensor,
    contextual_seq_len: int,
    kernel: Any = None,
) -> torch.Tensor:
    return functional.concat_2D_jagged(
        prefix_x, l2_x, offsets_left=prefix_offsets, offsets_right=l2_offsets, n_prefix_from_right=contextual_seq_len
    )


# By package: the modules of its operators, and what replaces which function of them.
_PACKAGES: dict[str, dict[str, dict[str, Function]]] = {
    "generative_recommenders": {
        "ops.hstu_attention": {"hstu_mha": functional.hstu_mha, "delta_hstu_mha": functional.delta_hstu_mha},
        "ops.hstu_compute": {},
        "ops.jagged_tensors": {
            "concat_2D_jagged": _concat_with_length,
            "split_2D_jagged": functional.split_2D_jagged,
            "hstu_split_l2_embeddings": _split_l2,
            "hstu_concat_l2_embeddings": _concat_l2,
        },
        "ops.layer_norm": {"layer_norm": functional.layer_norm, "swish_layer_norm": functional.swish_layer_norm},
        "ops.mm": {},
        "ops.position": {"add_timestamp_positional_embeddings": functional.add_timestamp_positional_embeddings},
    },
    "tzrec": {
        "ops.hstu_attention": {"hstu_mha": functional.hstu_mha, "delta_hstu_mha": functional.delta_hstu_mha},
        "ops.hstu_compute": {},
        "ops.jagged_tensors": {
            "concat_2D_jagged": functional.concat_2D_jagged,
            "split_2D_jagged": functional.split_2D_jagged,
        },
        "ops.layer_norm": {
            "layer_norm": functional.layer_norm,
            "rms_norm": functional.rms_norm,
            "swish_layer_norm": functional.swish_layer_norm,
        },
        "ops.mm": {},
        "ops.position": {
            "add_positional_embeddings": functional.add_positional_embeddings,
            "add_timestamp_positional_embeddings": functional.add_timestamp_positional_embeddings,
        },
    },
}


@dataclass(frozen=True)
class Patched:
    """Full names of functions that :func:`patch` replaced, and of those that it left, with the reason."""

    package: str
    replaced: tuple[str, ...]
    left: dict[str, str]

    def __str__(self) -> str:
        lines = [f"{self.package}: {len(self.replaced)} operators are those of hstujit"]
        lines += [f"  replaced {name}" for name in self.replaced]
        lines += [f"  left     {name}: {reason}" for name, reason in self.left.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class _Replacement:
    package: str
    original: Function
    ours: Function


_lock = threading.Lock()
_active: list[_Replacement] = []


def patch(package: str) -> Patched:
    """Makes an installed package call the operators of hstujit.

    Args:
        package: ``"generative_recommenders"`` or ``"tzrec"``.

    Calls that no operator here serves go to the function that was there: dropout of attention, masks of a tensor, head
    dimensions that are no multiple of 8, data types and devices without kernels.

    Raises:
        hstujit.errors.InvalidArgumentError: another package.
        ModuleNotFoundError: the package is not installed.
    """
    if package not in _PACKAGES:
        allowed = ", ".join(map(repr, _PACKAGES))
        raise errors.InvalidArgumentError(f"package is {package!r}; allowed: {allowed}")
    importlib.import_module(package)
    replaced: list[str] = []
    left: dict[str, str] = {}
    host = _has_host_backend()
    with _lock:
        for name, functions in _PACKAGES[package].items():
            module = _module(f"{package}.{name}")
            if module is None:
                left.update(dict.fromkeys((f"{package}.{name}.{f}" for f in functions), "there is no such module"))
                continue
            for function, original in _public_functions(module):
                full = f"{module.__name__}.{function}"
                if any(original is active.ours for active in _active):
                    replaced.append(full)
                    continue
                ours = functions.get(function)
                reason = "hstujit has no such operator" if ours is None else _differs(original, ours)
                if ours is None or reason:
                    left[full] = reason
                    continue
                replacement = _Replacement(package, original, _falling_back(original, ours, host))
                _active.append(replacement)
                _exchange(package, replacement.original, replacement.ours)
                replaced.append(full)
    return Patched(package, tuple(replaced), left)


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


def _differs(original: Function, ours: Function) -> str:
    """Why a call of the original may mean something else with ours; "" where it does not."""
    if ours is _concat_with_length:
        known = ["max_seq_len", *inspect.signature(functional.concat_2D_jagged).parameters]
    else:
        known = list(inspect.signature(ours).parameters)
    parameters = inspect.signature(original).parameters
    names = list(parameters)
    unknown = [name for name in names if name not in known]
    if unknown:
        return f"it takes {', '.join(unknown)}, which hstujit does not know"
    required = [name for name in names if parameters[name].default is inspect.Parameter.empty]
    if required != [name for name in known if name in required]:
        return f"it takes its arguments in another order: {', '.join(names)}"
    return ""


def _falling_back(original: Function, ours: Function, host: bool) -> Function:
    """A function with the original's arguments. It calls the original where ours has no kernel.

    It is written out, so that torch.compile and torch.fx go through it as through any other.
    """
    parameters = list(inspect.signature(original).parameters.values())
    names = [parameter.name for parameter in parameters]
    scope: dict[str, Any] = {"original": original, "ours": ours, "served": _served, "host": host}
    scope.update({f"default_{p.name}": p.default for p in parameters if p.default is not inspect.Parameter.empty})
    arguments = ", ".join(f"{n}=default_{n}" if f"default_{n}" in scope else n for n in names)
    given = "{" + ", ".join(f"{name!r}: {name}" for name in names) + "}"
    keywords = ", ".join(f"{name}={name}" for name in names)
    source = (
        f"def call({arguments}):\n"
        f"    if served({given}, host):\n"
        f"        return ours({keywords})\n"
        f"    return original({keywords})\n"
    )
    exec(source, scope)  # names are those of a function's parameters
    return functools.wraps(original)(scope["call"])


def _served(given: dict[str, Any], host: bool) -> bool:
    if given.get("attn_func") is not None or (given.get("dropout_pr", 0) > 0 and given.get("training", True)):
        return False
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            if not (value.is_cuda or (host and value.device.type == "cpu")):
                return False
            if value.dtype == torch.float64:
                return False
            if name in ("q", "delta_q", "k", "v") and (value.shape[-1] % 8 != 0 or value.shape[-1] > 256):
                return False
    return True


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


__all__ = ["Patched", "patch", "unpatch"]
