"""Functions with the arguments of another one in another order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ._calling import Calling, calling_as, calling_of

Result = TypeVar("Result")


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
    function: Callable[..., Result], order: str, module: str, name: str | None = None, **defaults: Any
) -> Callable[..., Result]:
    """``function`` with the arguments ``order``, names with commas between them. All others follow as keywords.

    Args:
        order: ``own=name`` is an argument with a name of its own. What ``function`` does not have is in no use.
        module: where the new one belongs.
        name: of the new one; None: that of ``function``.
        defaults: where they are others than those of ``function``, by name of ``function``; ``...`` is none.
    """
    known = dict(inspect.signature(function).parameters)
    for argument, default in defaults.items():
        known[argument] = known[argument].replace(default=inspect.Parameter.empty if default is ... else default)
    given = [argument.strip().partition("=") for argument in order.split(",")]
    own = {inner or outer: outer for outer, _, inner in given}
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
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
    calling = calling_of(function)
    names = {argument: own.get(argument, argument) for argument in known}
    renamed = {before: after for before, after in names.items() if before != after}
    through = {before: names.get(after, after) for before, after in calling.names.items()}
    return calling_as(Calling(calling.operator, {**renamed, **through}))(made)
