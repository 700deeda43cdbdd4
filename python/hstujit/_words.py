"""Words of sentences about what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def either(names: Sequence[str]) -> str:
    """``"a"``, ``"a or b"``, ``"a, b or c"``."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Behind the name of something that is not there: those that the library takes it for, if any."""
    from ._library import suggested

    meant = suggested(name, list(names))
    return f", did you mean {' and '.join(map(shown, meant))}?" if meant else ""


def not_allowed(argument: str, value: object, allowed: Iterable[str]) -> str:
    """Of an argument that is none of the names it may be."""
    names = list(allowed)
    nearest = did_you_mean(value, names) if isinstance(value, str) else ""
    return f"{argument} is {shown(value)}{nearest}; allowed: {', '.join(map(shown, names))}"


def shown(value: Any) -> str:
    """A value as a sentence has it: what takes more than one line, or much of one, is named by its type.

    Nothing else asks a value that may be anything for its repr: that of a caller's own class may fail, and so does that
    of an integer of thousands of digits, wherever it stands.
    """
    most = 100
    try:
        text = repr(value)
    except Exception:
        text = ""
    if isinstance(value, str):
        return cut(text)
    if 0 < len(text) <= most and text.isprintable():
        return text
    return f"an integer of {value.bit_length()} bits" if isinstance(value, int) else kind_of(value)


def cut(text: str) -> str:
    """A text of anybody's as the library's sentences show one: on one line, and not without end."""
    most = 500  # compiler/support/text.h
    text = text[: most + 1]
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return text if len(text) <= most else f"{text[:most]}..."


def kind_of(value: Any) -> str:
    """``"a dict"``, ``"a numpy.ndarray"``."""
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else kind.__module__ + "."
    return with_article(module + kind.__qualname__)


# What Python calls a function of the C API.
PYTHON_NAMES = {
    "context_create": "Context",
    "doctor": "Context.doctor",
    "diagnose": "Context.doctor",
    "config_load": "Config",
    "config_parse": "Config.parse",
    "config_load_recording": "Config.recording",
    "config_describe": "Config.describe",
    "config_schema": "config_schema",
    "op_create": "Op",
    "op_create_with": "Op",
    "instance_signature": "Op.signature",
    "op_from_config": "Op.from_config",
    **{
        f"op_{name}": "Op.signature"
        for name in ("signature", "argument", "find_argument", "argument_count", "argument_at")
    },
    **{name: f"Op.{name}" for name in ("prepare", "launch", "workspace_size")},
    **{name: name for name in ("prewarm", "tune", "run", "bench", "emit", "freeze", "explain")},
    "check": "check_config",
    **{f"cache_{name}": f"Cache.{name}" for name in ("list", "verify", "prune", "path", "export")},
    "cache_prune_nvrtc": "Cache.prune",
    "cache_import": "Cache.import_",
    "operators": "operators",
    "environment": "environment",
}


def in_python(sentence: str) -> str:
    """A sentence of the C library with the names of this package. Files, and names in quotes, stay as they are."""
    return re.sub(
        r"(?<![\w/.\"'-])hstujit_(\w+)(?![\w/.-]*[\w/])",
        lambda found: PYTHON_NAMES.get(found[1], found[0]),
        sentence,
    )


# In parentheses, where it is no shape: (number of attention heads H).
_EXPLANATION = r"\((?:[^()]|\([^()]*\))*?\b[a-z]+ [a-z]+\b(?:[^()]|\([^()]*\))*\)"


def renamed(sentence: str, names: Mapping[str, str]) -> str:
    """A sentence with other names in place of some. Quotes, explanations in parentheses and longer names stay."""
    words = "|".join(map(re.escape, names))
    pattern = rf"{_EXPLANATION}|(?<![\w/.\"'-])(?P<name>{words})(?![\w/])"
    return re.sub(pattern, lambda found: names.get(found["name"], found[0]), sentence)


def counted(count: int, noun: str) -> str:
    """``"1 array"``, ``"2 arrays"``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def with_article(noun: str) -> str:
    """``"a list"``, ``"an int"``."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


__all__ = [
    "PYTHON_NAMES",
    "counted",
    "cut",
    "did_you_mean",
    "either",
    "in_python",
    "kind_of",
    "not_allowed",
    "renamed",
    "shown",
    "with_article",
]
