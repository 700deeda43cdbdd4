"""Words of sentences about what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .errors import InvalidArgumentError

_MOST, _MOST_OF_TEXT = 100, 500  # letters of a value; the latter as in compiler/support/text.h


def check_type(argument: str, value: Any, types: type | tuple[type, ...], wanted: str) -> None:
    """Refuses an argument of another type."""
    if not isinstance(value, types):
        raise InvalidArgumentError(f"{argument} is {shown(value)}; it must be {wanted}")


def either(names: Sequence[str]) -> str:
    """``"a"``, ``"a or b"``, ``"a, b or c"``."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Follows the name of something that is not there: those that the library takes it for, if any."""
    from ._library import suggested

    meant = suggested(name, list(names))
    return f", did you mean {' and '.join(map(shown, meant))}?" if meant else ""


def not_allowed(argument: str, value: object, allowed: Iterable[str]) -> str:
    """The sentence about an argument that is not among the names it may be."""
    names = list(allowed)
    nearest = did_you_mean(value, names) if isinstance(value, str) else ""
    return f"{argument} is {shown(value)}{nearest}; allowed: {', '.join(map(shown, names))}"


def shown(value: Any) -> str:
    """A value as a sentence has it: what takes more than one line, or much of one, is named by its type."""
    try:
        text = repr(value)
    except Exception:  # of a caller's own class, or of an integer of thousands of digits
        text = ""
    if isinstance(value, str):
        return cut(text)
    if 0 < len(text) <= _MOST and text.isprintable():
        return text
    return f"an integer of {value.bit_length()} bits" if isinstance(value, int) else f"a {type(value).__qualname__}"


def cut(text: str) -> str:
    """A text of anybody's as the library's sentences show one: on one line, and not without end."""
    text = text[: _MOST_OF_TEXT + 1]
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return text if len(text) <= _MOST_OF_TEXT else f"{text[:_MOST_OF_TEXT]}..."


# In parentheses, where it is no shape: (number of attention heads H).
_EXPLANATION = r"\((?:[^()]|\([^()]*\))*?\b[a-z]+ [a-z]+\b(?:[^()]|\([^()]*\))*\)"


def renamed(sentence: str, names: Mapping[str, str]) -> str:
    """A sentence with other names in place of some. Quotes, explanations in parentheses and longer names stay."""
    words = "|".join(map(re.escape, names))
    pattern = rf"{_EXPLANATION}|(?<![\w/.\"'-])(?P<name>{words})(?![\w/])"
    return re.sub(pattern, lambda found: names.get(found["name"], found[0]), sentence)
