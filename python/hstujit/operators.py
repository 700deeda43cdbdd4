"""The operators of the library: ``hstujit.operators.hstu_attention`` and all others, each with its backward direction.

Each is made from the library's own description when it is first asked for. What begins with ``hstu_`` has a short name
as well: ``attention`` is ``hstu_attention``.
"""

from __future__ import annotations

import functools
from typing import Any

from . import _functions, _interface
from ._words import shown

_PREFIX = "hstu_"


@functools.cache
def names() -> dict[str, str]:
    """The function of each name."""
    full = {name: name for name in _interface.interfaces()}
    short = {name[len(_PREFIX) :]: name for name in full if name.startswith(_PREFIX)}
    return {**short, **full}


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in names():
        raise AttributeError(
            f"module {shown(__name__)} has no operator {shown(name)}; there are {', '.join(sorted(names()))}"
        )
    found = globals()[names()[name]] if names()[name] in globals() else _functions.function(names()[name])
    return globals().setdefault(names()[name], found)


def __dir__() -> list[str]:
    return sorted([*globals(), *names()])
