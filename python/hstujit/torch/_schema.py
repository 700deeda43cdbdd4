"""Arguments of the schemas that python/native/operators.cpp makes, and functions that have them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._interface import Interface
from ..signature import Argument

NAMESPACE = "hstujit"
_TYPES = {"tensor": "Tensor", "float": "float", "int": "SymInt"}

# Name, type in the schema, and default, which is ... where there is none.
Entry = tuple[str, str, Any]


@functools.cache
def positional(described: Interface) -> tuple[Entry, ...]:
    """In the order of the function for arrays."""

    def entry(argument: Argument) -> Entry:
        type_ = _TYPES[argument.kind]
        if argument.name in described.optional:
            return argument.name, type_ + "?", None
        return argument.name, type_, described.usual.get(argument.name, ...)

    return tuple(entry(argument) for argument in described.call_order)


@functools.cache
def keywords(described: Interface) -> tuple[Entry, ...]:
    """Parameters, then rows of outputs."""
    parameters = ((p.name, p.type, ... if p.default is None else p.default) for p in described.parameters)
    return *parameters, *((keyword, "SymInt?", None) for _, keyword in described.rows)


def function_of(described: Interface, body: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """A function with the arguments of the schema. It gives ``body`` inputs, parameters and rows, a tuple of each."""

    def text(name: str, type_: str, default: Any) -> str:
        return name if default is ... else f"{name}={repr(default)}"

    groups = (
        [argument.name for argument in described.inputs],
        [parameter.name for parameter in described.parameters],
        [keyword for _, keyword in described.rows],
    )
    tuples = ", ".join("(" + "".join(name + ", " for name in names) + ")" for names in groups)
    source = f"def {described.name}({_arguments(described, text)}):\n    return body({tuples})\n"
    scope: dict[str, Any] = {"body": body}
    exec(source, scope)  # of names that are the library's
    return scope[described.name]


def when_called(make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """A function that is made by its first call: a process calls few of the functions that PyTorch wants registered."""
    made = functools.cache(make)
    return lambda *args, **kwargs: made()(*args, **kwargs)


def _arguments(described: Interface, text: Callable[[str, str, Any], str]) -> str:
    arguments = [text(*entry) for entry in positional(described)]
    if named := keywords(described):
        arguments += ["*", *(text(*entry) for entry in named)]
    return ", ".join(arguments)
