"""A function in place of one of a public package, which calls that one wherever no operator here serves a call."""

from __future__ import annotations

import functools
import inspect
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch

from .. import errors
from .._words import cut
from ._calling import written_out
from ._public import Function, Substitute

_REASONS = 100  # that are counted apart: one may be a sentence with a value


@dataclass
class Calls:
    """How many calls of a replaced function an operator here served, and how many it did not, by reason.

    Calls in a compiled graph are not counted, and of threads that call at one time some may be missed.
    """

    ours: int = 0
    theirs: Counter[str] = field(default_factory=Counter)

    def count(self, reason: str) -> None:
        if not reason:
            self.ours += 1
        elif reason in self.theirs or len(self.theirs) < _REASONS:
            self.theirs[reason] += 1
        else:
            self.theirs["other reasons"] += 1


def falling_back(original: Function, substitute: Substitute, calls: Calls, kept: set[str], host: bool) -> Function:
    """A function with the original's arguments. It calls the original where ours does not serve the call.

    ``kept`` are names of the package's kernels whose calls stay with it, now: every call looks there.
    """
    if substitute.around:
        return substitute.around(original, calls.count)

    def refuses(given: dict[str, Any]) -> str:
        name = getattr(given.get("kernel"), "name", None)
        reason = f"kernel {name} is kept" if name in kept else ""
        reason = reason or _without_kernels(given, host) or substitute.refuses(given)
        if torch.compiler.is_compiling():
            return reason or substitute.beyond_limits(given)
        if reason:
            calls.count(reason)
        return reason

    def served(given: dict[str, Any]) -> Any:
        try:
            result = substitute.function(**given)
        except RuntimeError as error:
            # PyTorch begins what it says of a value that is none of a schema's with the operator's name.
            if not isinstance(error, _REFUSALS) and not str(error).startswith("hstujit::"):
                raise
            # What the environment asks for is no limit of a call.
            if "HSTUJIT_" in str(error) or _is_about_values(error):
                calls.count("")
                raise
            calls.count(substitute.beyond_limits(given) or cut(str(error)))
            return original(**given)
        calls.count("")
        return result

    body = (
        "    if refuses({given}):\n        return original({keywords})\n"
        "    if is_compiling():\n        return ours({keywords})\n"
        "    return served({given})\n"
    )
    scope: dict[str, Any] = {"original": original, "ours": substitute.function, "refuses": refuses, "served": served}
    scope["is_compiling"] = torch.compiler.is_compiling
    parameters = inspect.signature(original).parameters.values()
    return functools.wraps(original)(written_out("call", parameters, body, scope))


_REFUSALS = (errors.InvalidArgumentError, errors.InvalidConfigError, errors.UnsupportedError)


def _is_about_values(error: RuntimeError) -> bool:
    """Whether a call is refused for what its tensors hold, such as offsets that fall: a mistake wherever it is called.

    The error names an element then: ``seq_offsets[2]``.
    """
    return re.search(r"(?<!\.shape)(?<!\.strides)\[\d", getattr(error, "argument", "")) is not None


def _without_kernels(given: dict[str, Any], host: bool) -> str:
    for value in given.values():
        if isinstance(value, torch.Tensor):
            if not (value.is_cuda or (host and value.device.type == "cpu")):
                return "a device without kernels"
            if value.layout != torch.strided or value.is_nested or value.is_quantized:
                return "a tensor that has no strides"
            if value.dtype == torch.float64:
                return "fp64"
    return ""


def has_host_backend() -> bool:
    try:
        torch.ops.hstujit.complete_cumsum(torch.ones(1, dtype=torch.int64, device="cpu"))
    except errors.NoHostBackendError:
        return False
    return True
