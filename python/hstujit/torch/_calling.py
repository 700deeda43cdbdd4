"""Functions that call an operator under another name, or with arguments in another order.

Their errors have the names of their own arguments.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from .._words import renamed
from ..errors import Error
from ._nodes import Node, has_proxies

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")


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
        rename(error, names, operator.__name__)
        raise


def written_out(name: str, parameters: Iterable[inspect.Parameter], body: str, scope: dict[str, Any]) -> Any:
    """A function with these parameters, of the lines ``body``, where ``{keywords}`` stands for all arguments by name.

    It is written out, so that torch.compile and torch.fx go through it as through any other.
    """
    head = []
    scope = dict(scope)
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in head:
            head.append("*")
        if parameter.default is parameter.empty:
            head.append(parameter.name)
        else:
            head.append(f"{parameter.name}=default_{parameter.name}")
            scope[f"default_{parameter.name}"] = parameter.default
    names = [argument.partition("=")[0] for argument in head if argument != "*"]
    body = body.replace("{keywords}", ", ".join(f"{name}={name}" for name in names))
    body = body.replace("{given}", "{" + ", ".join(f"{repr(name)}: {name}" for name in names) + "}")
    exec(f"def {name}({', '.join(head)}):\n{body}", scope)  # names are those of a function's parameters
    return scope[name]


def in_order(
    module: str, function: Callable[..., Result], order: str, name: str | None = None, **defaults: Any
) -> Callable[..., Result]:
    """``function`` with the arguments ``order``, names with commas between them. All others follow as keywords.

    Args:
        module: where the new one belongs.
        order: ``...`` in front stands for those that ``function`` takes by position, and ``own=name`` is an argument
            with a name of its own. What ``function`` does not have is in no use.
        name: of the new one; None: that of ``function``.
        defaults: where they are others than those of ``function``, by name of ``function``; ``...`` is none.
    """
    known = dict(inspect.signature(function).parameters)
    for argument, default in defaults.items():
        known[argument] = known[argument].replace(default=inspect.Parameter.empty if default is ... else default)
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    order = order.replace("...", ", ".join(p.name for p in known.values() if p.kind is place))
    given = [argument.strip().partition("=") for argument in order.split(",")]
    own = {inner or outer: outer for outer, _, inner in given}
    unused = {inner: inspect.Parameter(inner, place, annotation="int") for inner in own if inner not in known}
    positional = [{**known, **unused}[inner].replace(name=outer, kind=place) for inner, outer in own.items()]
    rest = [p.replace(kind=p.KEYWORD_ONLY) for argument, p in known.items() if argument not in own]
    passed = ", ".join(f"{argument}={own.get(argument, argument)}" for argument in known)
    inner = getattr(function, "__wrapped__", function)
    body = f"    return function({passed})\n"
    made = written_out(name or function.__name__, [*positional, *rest], body, {"function": inner})
    made.__module__, made.__doc__ = module, function.__doc__
    made.__annotations__ = {p.name: p.annotation for p in (*positional, *rest)}
    made.__annotations__["return"] = function.__annotations__["return"]
    called: Calling = function.calling  # type: ignore[attr-defined]
    names = {argument: own.get(argument, argument) for argument in known}
    renamed = {before: after for before, after in names.items() if before != after}
    through = {before: names.get(after, after) for before, after in called.names.items()}
    return calling_as(Calling(called.operator, {**renamed, **through}))(made)
