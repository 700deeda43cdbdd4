"""Arguments of the package's own functions, checked by their annotations, so that what is wrong is a sentence."""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from ._words import did_you_mean, shown
from .errors import InvalidArgumentError

Function = TypeVar("Function", bound=Callable[..., Any])


def is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def as_integer(value: Any) -> int | None:
    """An integer of any framework as Python's: also an array of rank 0. None of what is none."""
    value = _scalar(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return int(value.__index__())
    except TypeError:  # of an array with an axis
        return None


def as_real(value: Any) -> float | None:
    """Likewise of a real number. A text is none, whatever it says."""
    value = _scalar(value)
    try:
        return float(value) if is_number(value) else None
    except OverflowError:
        return None


def _scalar(value: Any) -> Any:
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def is_flag(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # numpy's, too


def _is_shard(value: Any) -> bool:
    if not isinstance(value, (tuple, list)) or len(value) != 2 or not all(map(is_integer, value)):
        return False
    index, count = value
    return 0 <= index < count or (index, count) == (0, 0)  # the latter: all of it


def _is_flag(value: Any) -> bool:
    return is_flag(value) or (is_integer(value) and value in (0, 1))


# By annotation: whether a value may be passed, and what is allowed.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "bool": (_is_flag, "True or False"),
    "float": (is_number, "a number"),
    "int": (is_integer, "an integer"),
    "str": (lambda value: isinstance(value, str), "a text"),
    "str | os.PathLike[str]": (lambda value: isinstance(value, (str, os.PathLike)), "a text or a path"),
    "tuple[int, int]": (_is_shard, "two integers, (index, count), with 0 <= index < count"),
    "Callable": (callable, "a function"),
}
_CALLABLE = ("Log", "Progress")


def _kind(annotation: Any) -> tuple[Callable[[Any], bool], str] | None:
    """None for what is checked where it is used."""
    text = annotation if isinstance(annotation, str) else ""
    optional = text.endswith(" | None")
    base = text.removesuffix(" | None")
    known = _KINDS.get("Callable" if base in _CALLABLE else base)
    if known is None or not optional:
        return known
    is_known, allowed = known
    return lambda value: value is None or is_known(value), f"{allowed}, or None"


def bind(signature: inspect.Signature, called: str, args: Any, kwargs: Any) -> inspect.BoundArguments:
    """The arguments of a call by name. What is wrong is a TypeError that names all of it, and similar arguments."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        names = [name for name in signature.parameters if name not in ("self", "cls")]
        wrong = [f"{shown(name)} is no argument{_meant(called, name, names)}" for name in kwargs if name not in names]
        missing = [repr(name) for name in _missing(signature, args, kwargs) if repr(name) not in "".join(wrong)]
        if missing:
            required = "a required argument" if len(missing) == 1 else "required arguments"
            wrong.append(f"missing {required}: {', '.join(missing)}")
        keywords = [name for name in names if signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY]
        if not wrong and keywords and "too many positional" in str(error):
            wrong = [f"too many positional arguments: {keywords[0]} and what follows it are keywords"]
        raise TypeError(f"{called}: {'; '.join(wrong) or str(error)}; it takes {', '.join(names)}") from None


# Sizes that others pass beside the tensors that have them.
_FROM_SHAPES = [
    "heads",
    "num_heads",
    "nheads",
    "n_heads",
    "head_dim",
    "attn_dim",
    "attention_dim",
    "hidden_dim",
    "linear_dim",
]


def _meant(called: str, name: str, names: list[str]) -> str:
    if called.split("_backward")[0].endswith("attention") and "dropout" in name.lower():
        return ": attention has no dropout"
    if "q" in names and name.lower() in _FROM_SHAPES:
        return ": it follows from the shapes of q and v"
    meant = did_you_mean(name, names)
    if meant or "config" not in names:
        return meant
    return ": it may be a field of config" if name in _fields_of_configs() else ""


def _fields_of_configs() -> set[str]:
    """Of entries of a config, and of STULayerConfig where there may be one."""
    from ._interface import operators  # which asks the library, and is needed by few

    fields = {"name", "op", "directions", "lengths", "max_seq_len"}
    for operator in operators().values():
        fields.update(operator["parameters"]["properties"])
    layers = sys.modules.get("hstujit.torch.stu")
    return fields.union(layers.STULayerConfig.__dataclass_fields__ if layers else ())


def _missing(signature: inspect.Signature, args: Any, kwargs: Any) -> list[str]:
    """What a call does not give and must. None where it gives too much."""
    try:
        given = signature.bind_partial(*args, **{name: kwargs[name] for name in kwargs if name in signature.parameters})
    except TypeError:
        return []
    return [
        name
        for name, parameter in signature.parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and name not in given.arguments
    ]


def named(function: Function) -> Function:
    """A function that says by a sentence which arguments it does not have, and which are missing."""
    signature = inspect.signature(function)
    called = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = bind(signature, called, args, kwargs)
        return function(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]


def checked(function: Function) -> Function:
    """A function of the package, which says by a sentence that an argument is of another kind, or is none of its own.

    Its annotations are text (``from __future__ import annotations``).
    """
    signature = inspect.signature(function)
    kinds = {name: kind for name, p in signature.parameters.items() if (kind := _kind(p.annotation))}
    called = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = bind(signature, called, args, kwargs)
        wrong = []
        for name, (is_allowed, allowed) in kinds.items():
            if name not in bound.arguments:
                continue
            value = bound.arguments[name]
            if not is_allowed(value):
                wrong.append(f"{name} is {shown(value)}; it must be {allowed}")
            elif is_integer(value):
                bound.arguments[name] = int(value)  # numpy's is none for ctypes
        if wrong:
            raise InvalidArgumentError("\n".join(wrong))
        return function(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]


__all__ = ["as_integer", "as_real", "bind", "checked", "is_flag", "is_integer", "is_number", "named"]
