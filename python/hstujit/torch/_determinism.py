"""``torch.use_deterministic_algorithms``, as it is when an operator is called.

Almost every kernel gives the same bits in every launch. Where the flag is set, an op chooses among those alone. The
rule that each problem has a deterministic kernel leaves two cases in which there is none: a choice of HSTUJIT_FROZEN or
HSTUJIT_OVERRIDE that is another kernel.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch

from ..errors import Error, UnsupportedError
from ..op import Op

# The kernels that a call may get.
ANY, DETERMINISTIC, PREFERRED = 0, 1, 2

_REASON = "deterministic ones are asked for"  # compiler/plan/search_space.cpp


def determinism() -> int:
    if not torch.are_deterministic_algorithms_enabled():
        return ANY
    return PREFERRED if torch.is_deterministic_algorithms_warn_only_enabled() else DETERMINISTIC


def refused(name: str, error: Error) -> Error:
    """The error of an operator, in PyTorch's words where its kernel is refused for the flag."""
    if _REASON not in str(error) or determinism() == ANY:
        return error
    return UnsupportedError(f"{_sentence(name)} ({error})")


def _sentence(name: str) -> str:
    return (
        f"hstujit::{name} does not have a deterministic implementation, but you set "
        "'torch.use_deterministic_algorithms(True)'"
    )


def chosen(name: str, mode: int, ops_of: Callable[[bool], list[Op]], prepare: Callable[[Op], None]) -> list[Op]:
    """The ops that calls in this mode run, of which the last one is launched next.

    With ``warn_only`` that one is prepared to find out whether it is refused for the flag. Then the warning is given.

    Args:
        ops_of: makes the ops, deterministic ones where it is given True.
    """
    ops = ops_of(mode != ANY)
    if mode != PREFERRED or ops[-1].backend == "host":
        return ops
    try:
        prepare(ops[-1])
    except Error as error:
        if _REASON not in str(error):
            raise
        warnings.warn(f"{_sentence(name)}, with warn_only=True ({error})", stacklevel=2)
        return ops_of(False)
    return ops


__all__ = ["chosen", "determinism", "refused"]
