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

# Which kernels a call may get.
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


def is_to_be_deterministic(name: str, mode: int, op: Op, prepare: Callable[[Op], None]) -> bool:
    """Whether calls in this mode run deterministic ops, of which ``op`` is one.

    With ``warn_only`` the kernel is prepared to find out, and the warning is given, where it is refused for the flag.
    """
    if mode != PREFERRED or op.backend == "host":
        return mode != ANY
    try:
        prepare(op)
    except Error as error:
        if _REASON not in str(error):
            raise
        warnings.warn(f"{_sentence(name)}, with warn_only=True ({error})", stacklevel=2)
        return False
    return True


__all__ = ["ANY", "determinism", "is_to_be_deterministic", "refused"]
