"""Calls of functions and layers: what is wrong with an argument is a sentence that names it.

PyTorch takes a number for another one without a word: 40.7 of a tensor is 40, True is 1. So numbers, flags and texts
are looked at before the call, by the annotations of a function, and the rest where the call has failed: whether a
number has room, and whether a tensor is one that kernels can read.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from .._checked import as_integer, as_real, bind, is_flag, is_integer
from .._words import renamed, shown
from ..errors import Error, InvalidArgumentError
from ._arguments import is_readable
from ._nodes import Node, has_proxies

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Calling:
    """Which operator a function calls, and what its arguments are named, by name of the operator's, where they differ.

    ``inner`` are other names that a sentence may have for them: those of a function between the two.
    """

    operator: str
    names: Mapping[str, str]
    inner: Mapping[str, str] = field(default_factory=dict)

    def in_sentence(self, sentence: str) -> str:
        """With this function's names. A parameter of the operator is an argument here: ``layer_norm.width is 0``."""
        plain = re.sub(rf"^{self.operator}\.", "", sentence, flags=re.MULTILINE)
        names = {**self.names, **self.inner}
        return renamed(plain, names) if names else plain


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


def _seed(value: Any) -> Any:
    return value if isinstance(value, torch.Tensor) else _integer(value)


def _real(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _number_of(value, not value.is_complex())
    number = as_real(value)
    return _WRONG if number is None else number


def _flag(value: Any) -> Any:
    return bool(value) if is_flag(value) or (is_integer(value) and value in (0, 1)) else _WRONG


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else _WRONG


def _fits_real(value: Any) -> bool:
    try:
        return isinstance(float(value), float)
    except OverflowError:
        return False


def _fits_integer(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _is_encodable(value: str) -> bool:
    try:
        return isinstance(value.encode(), bytes)
    except UnicodeEncodeError:
        return False


# By annotation: types that are passed as they are, what becomes of others, and what is allowed.
_KINDS: dict[str, tuple[tuple[type, ...], Callable[[Any], Any], str]] = {
    "bool": ((bool,), _flag, "True or False"),
    "float": ((float, int), _real, "a number"),
    "int": ((int,), _integer, "an integer"),
    "int | torch.Tensor": ((int, torch.Tensor), _seed, "an integer, or a tensor (1) of int64"),
    "str": ((str,), _text, "a text"),
}
# By type: what PyTorch has room for, which it says without naming the argument.
_ROOM: dict[str, tuple[type, Callable[[Any], bool], str]] = {
    "float": (int, _fits_real, "a number that fp64 has room for"),
    "int": (int, _fits_integer, "an integer of 64 bits"),
    "int | torch.Tensor": (int, _fits_integer, "an integer of 64 bits, or a tensor (1) of int64"),
    "str": (str, _is_encodable, "a text without lone surrogates"),
}


class _Kind:
    def __init__(self, annotation: str) -> None:
        base = annotation.removesuffix(" | None")
        self.types, self.convert, self.allowed = _KINDS[base]
        self.room = _ROOM.get(base)
        if base != annotation:
            self.types, self.allowed = (*self.types, type(None)), f"{self.allowed}, or None"

    def value_of(self, value: Any) -> Any:
        if type(value) in self.types or isinstance(value, _TRACED):
            return value
        return self.convert(value)

    def too_large(self, value: Any) -> str:
        """What it must be, where PyTorch has no room for it; else ""."""
        if self.room is None:
            return ""
        kind, fits, allowed = self.room
        value = self.value_of(value)
        return allowed if isinstance(value, kind) and not fits(value) else ""


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


def _check_room(bound: inspect.BoundArguments, kinds: Mapping[str, _Kind]) -> None:
    wrong = [
        _sentence(name, value, allowed)
        for name, value in bound.arguments.items()
        if name in kinds and (allowed := kinds[name].too_large(value))
    ]
    if wrong:
        raise InvalidArgumentError("\n".join(wrong)) from None


def _check_tensors(bound: inspect.BoundArguments) -> None:
    for name, value in bound.arguments.items():
        annotation = bound.signature.parameters[name].annotation
        if annotation not in ("torch.Tensor", "torch.Tensor | None") or (
            value is None and annotation != "torch.Tensor"
        ):
            continue
        if not hasattr(value, "stride"):
            raise InvalidArgumentError(_sentence(name, value, "a tensor")) from None
        if kind := _unreadable(value):
            raise InvalidArgumentError(f"{name} is {kind}; it must be a dense one, of layout torch.strided") from None
        if value.dim() == 0:
            raise InvalidArgumentError(f"{name} has rank 0, shape (); it must have at least one dimension") from None


def _unreadable(tensor: Any) -> str:
    """What a tensor is that has no elements at strides, of a type that kernels know."""
    if getattr(tensor, "is_nested", False):
        return "a nested tensor"
    if getattr(tensor, "is_quantized", False):
        return "a quantized tensor"
    layout = getattr(tensor, "layout", torch.strided)
    return "" if layout == torch.strided else f"a tensor of layout {layout}"


# Of PyTorch and of Python, about arguments. This package's own are sentences.
_FAILURES = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def explained(function: Function) -> Function:
    """A function whose numbers, flags and texts are checked, and which says what is wrong with a call.

    A call of a function with proxies of ``torch.fx`` is a node of its graph (_nodes.py).

    ``torch.compile`` traces it. There a number that has another type of Python is refused, and the rest is PyTorch's.
    """
    return explained_as(None)(function)


def calling(called: str | Callable[..., Any], **names: str) -> Callable[[Function], Function]:
    """Of a function that calls an operator, by name, or another function that does: it is :func:`explained`.

    ``names`` are those of its arguments, by the names that they have there. Its sentences have them.
    """
    if isinstance(called, str):
        return explained_as(Calling(called, names))
    below = calling_of(called)
    same = {name: own for name, own in names.items() if name not in below.names.values()}
    through = {name: names.get(inner, inner) for name, inner in below.names.items()}
    return explained_as(Calling(below.operator, {**same, **through}, names))


def calling_of(function: Callable[..., Any]) -> Calling:
    return function.calling  # type: ignore[attr-defined]


def explained_as(names: Calling | None) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        return _explained(function, names)

    return decorate


def _explained(function: Function, names: Calling | None) -> Function:
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
            if node is not None and (has_proxies(args) or (kwargs and has_proxies(tuple(kwargs.values())))):
                bound = bind(signature, called, args, kwargs)
                _converted(bound, kinds)
                return node.add(bound.arguments)
            if is_plain(args, kwargs):
                return function(*args, **kwargs)
            bound = bind(signature, called, args, kwargs)
            _converted(bound, kinds)
            return function(*bound.args, **bound.kwargs)
        except _FAILURES as error:
            if not isinstance(error, Error):
                # Raise where the arguments are what is wrong.
                bound = bind(signature, called, args, kwargs)
                _check_room(bound, kinds)
                _check_tensors(bound)
            elif names is not None:
                error.args = (names.in_sentence(str(error)),)
            raise

    call.calling = names  # type: ignore[attr-defined]
    node = None if names is None else Node(call)
    return call  # type: ignore[return-value]


def called_as(names: Mapping[str, str], operator: Callable[..., Any], **arguments: Any) -> Any:
    """Calls an operator; its sentences name arguments as ``names`` does."""
    try:
        return operator(**arguments)
    except Error as error:
        error.args = (renamed(str(error), names),)
        raise


__all__ = ["Calling", "called_as", "calling", "calling_of", "explained", "explained_as"]
