"""Functions that call an operator under another name: their errors have the names of their own arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from .._words import renamed
from ..errors import Error
from ._nodes import Node, has_proxies

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Calling:
    """Which operator a function calls, and what its arguments are named, by name of the operator's, where they differ.

    Other names that a sentence may have for them, those of a function between the two, are among ``names``, too.
    """

    operator: str
    names: Mapping[str, str]


def calling(operator: str, **names: str) -> Callable[[Function], Function]:
    """Decorates a function that calls an operator. ``names`` are those of its arguments, by name of the operator's."""
    return calling_as(Calling(operator, names))


def calling_of(function: Callable[..., Any]) -> Calling:
    return function.calling  # type: ignore[attr-defined]


def calling_as(called: Calling) -> Callable[[Function], Function]:
    """Decorates such a function. A call with proxies of ``torch.fx`` is a node of its graph (_nodes.py)."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if has_proxies(args) or (kwargs and has_proxies(tuple(kwargs.values()))):
                return node.add(signature.bind(*args, **kwargs).arguments)
            try:
                return function(*args, **kwargs)
            except Error as error:
                rename(error, called.names, called.operator)
                raise

        call.calling = called  # type: ignore[attr-defined]
        node = Node(call)
        return call  # type: ignore[return-value]

    return decorate


def rename(error: Error, names: Mapping[str, str], operator: str) -> None:
    """Puts a caller's names into an error. A parameter of the operator is an argument there: ``layer_norm.width``."""
    lines = [line.removeprefix(f"{operator}.") for line in str(error).splitlines()]
    sentence, argument = "\n".join(lines), error.argument.removeprefix(f"{operator}.")
    error.args = (renamed(sentence, names) if names else sentence,)
    error.argument = renamed(argument, names) if names else argument


def called_as(names: Mapping[str, str], operator: Callable[..., Any], **arguments: Any) -> Any:
    """Calls an operator; its errors name arguments as ``names`` does."""
    try:
        return operator(**arguments)
    except Error as error:
        rename(error, names, "")
        raise
