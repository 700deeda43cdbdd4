"""Numbers and flags of any framework."""

from __future__ import annotations

import numbers
from typing import Any


def is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def as_integer(value: Any) -> int | None:
    """An integer of any framework, also an array of rank 0, as Python's. None of anything else."""
    value = _scalar(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return int(value.__index__())
    except TypeError:  # of an array with an axis
        return None


def as_real(value: Any) -> float | None:
    """A real number of any framework as Python's. None of anything else, and of a text."""
    value = _scalar(value)
    try:
        return float(value) if is_number(value) else None
    except OverflowError:
        return None


def _scalar(value: Any) -> Any:
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def is_flag(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # numpy's, too
