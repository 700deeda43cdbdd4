"""Words of sentences about what is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def either(names: Sequence[str]) -> str:
    """``"a"``, ``"a or b"``, ``"a, b or c"``."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Behind the name of something that is not there: the one that is nearest, if one is near."""
    nearest = difflib.get_close_matches(name, names, n=1)
    return f", did you mean {nearest[0]!r}?" if nearest else ""


def not_allowed(argument: str, value: object, allowed: Iterable[str]) -> str:
    """Of an argument that is none of the names it may be."""
    names = list(allowed)
    nearest = did_you_mean(value, names) if isinstance(value, str) else ""
    return f"{argument} is {value!r}{nearest}; allowed: {', '.join(map(repr, names))}"


def counted(count: int, noun: str) -> str:
    """``"1 array"``, ``"2 arrays"``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def with_article(noun: str) -> str:
    """``"a list"``, ``"an int"``."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


__all__ = ["counted", "did_you_mean", "either", "not_allowed", "with_article"]
