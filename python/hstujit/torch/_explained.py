"""Calls of functions and layers: what is wrong with an argument is a sentence that names it.

PyTorch takes a number for another one without a word: 40.7 of a tensor is 40, True is 1. So numbers, flags and texts
are looked at before the call, by the annotations of a function, and the rest where the call has failed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch

from .._checked import as_integer, as_real, bind, is_flag, is_integer
from .._words import renamed, shown
from ..errors import Error, InvalidArgumentError
from ._arguments import is_readable

Function = TypeVar("Function", bound=Callable[..., Any])

# Stand for a value while PyTorch traces.
_TRACED = (torch.SymInt, torch.SymFloat, torch.SymBool, torch.fx.Proxy)
_WRONG = object()


def _number_of(value: torch.Tensor, is_allowed: bool) -> Any:
    if not is_allowed or value.dim() != 0 or value.dtype == torch.bool:
        return _WRONG
    return value.item() if is_readable(value) else value


def _integer(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _number_of(value, not (value.is_floating_point() or value.is_complex()))
    number = as_integer(value)
    return _WRONG if number is None else number


def _real(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _number_of(value, not value.is_complex())
    number = as_real(value)
    return _WRONG if number is None else number


def _flag(value: Any) -> Any:
    return bool(value) if is_flag(value) or (is_integer(value) and value in (0, 1)) else _WRONG


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else _WRONG


# By annotation: types that are passed as they are, what becomes of others, and what is allowed.
_KINDS: dict[str, tuple[tuple[type, ...], Callable[[Any], Any], str]] = {
    "bool": ((bool,), _flag, "True or False"),
    "float": ((float, int), _real, "a number"),
    "int": ((int,), _integer, "an integer"),
    "str": ((str,), _text, "a text"),
}


class _Kind:
    def __init__(self, annotation: str) -> None:
        base = annotation.removesuffix(" | None")
        self.types, self.convert, self.allowed = _KINDS[base]
        if base != annotation:
            self.types, self.allowed = (*self.types, type(None)), f"{self.allowed}, or None"

    def value_of(self, value: Any) -> Any:
        if type(value) in self.types or isinstance(value, _TRACED):
            return value
        return self.convert(value)


def _kinds(signature: inspect.Signature) -> dict[str, _Kind]:
    """Of the arguments that are no tensors. Annotations are text (``from __future__ import annotations``)."""
    annotations = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return {
        name: _Kind(annotation)
        for name, annotation in annotations.items()
        if isinstance(annotation, str) and annotation.removesuffix(" | None") in _KINDS
    }


def _sentence(name: str, value: Any, allowed: str) -> str:
    return f"{name} is {shown(value)}; it must be {allowed}"


def _converted(bound: inspect.BoundArguments, kinds: Mapping[str, _Kind]) -> None:
    wrong = []
    for name, value in bound.arguments.items():
        if name not in kinds:
            continue
        bound.arguments[name] = kinds[name].value_of(value)
        if bound.arguments[name] is _WRONG:
            wrong.append(_sentence(name, value, kinds[name].allowed))
        elif isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled():
            wrong.append(f"{name} is a tensor that requires a gradient; a number has none: give {name}.item()")
    if wrong:
        raise InvalidArgumentError("\n".join(wrong))


def _check_tensors(bound: inspect.BoundArguments) -> None:
    for name, value in bound.arguments.items():
        annotation = bound.signature.parameters[name].annotation
        if annotation == "torch.Tensor | None" and (value is None or hasattr(value, "stride")):
            continue
        if annotation not in ("torch.Tensor", "torch.Tensor | None"):
            continue
        if not hasattr(value, "stride"):
            raise InvalidArgumentError(_sentence(name, value, "a tensor")) from None
        if value.dim() == 0:
            raise InvalidArgumentError(f"{name} has rank 0, shape (); it must have at least one dimension") from None


def explained(function: Function) -> Function:
    """A function whose numbers, flags and texts are checked, and which says what is wrong with a call.

    ``torch.compile`` traces it. There a number that has another type of Python is refused, and the rest is PyTorch's.
    """
    signature = inspect.signature(function)
    called = function.__qualname__
    kinds = _kinds(signature)
    places = [(place, kinds[name].types) for place, name in enumerate(signature.parameters) if name in kinds]
    types = {name: kind.types for name, kind in kinds.items()}

    def is_plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether nothing has to be looked at: the way of nearly every call."""
        for name in kwargs:
            if name in types and type(kwargs[name]) not in types[name]:
                return False
        given = len(args)
        for place, known in places:
            if place >= given:
                break
            if type(args[place]) not in known:
                return False
        return True

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if is_plain(args, kwargs):
                return function(*args, **kwargs)
            bound = bind(signature, called, args, kwargs)
            _converted(bound, kinds)
            return function(*bound.args, **bound.kwargs)
        except (AttributeError, TypeError, IndexError, RuntimeError) as error:
            if not isinstance(error, Error):
                # Raise where the arguments are what is wrong.
                _check_tensors(bind(signature, called, args, kwargs))
            raise

    return call  # type: ignore[return-value]


def called_as(names: Mapping[str, str], operator: Callable[..., Any], **arguments: Any) -> Any:
    """Calls an operator; its sentences name arguments as ``names`` does."""
    try:
        return operator(**arguments)
    except Error as error:
        error.args = (renamed(str(error), names),)
        raise


__all__ = ["called_as", "explained"]
