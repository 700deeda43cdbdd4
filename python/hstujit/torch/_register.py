"""Every operator of the library as ``torch.ops.hstujit.*``.

All of it follows from the interface of each operator, as the functions for arrays do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .._calls import with_flag
from .._interface import Interface, interface, interfaces
from .._words import did_you_mean
from ._autocast import autocast_of
from ._autograd import Derivative, NoDerivative, Recorder
from ._build import tag_caches
from ._direct import has_direct_calls
from ._front import Front
from ._native import Library, native_library
from ._schema import NAMESPACE, function_of, when_called
from ._traced import Function

library = torch.library.Library(NAMESPACE, "FRAGMENT")


def _packet(name: str) -> Any:
    return getattr(getattr(torch.ops, NAMESPACE), name)


def _operator(name: str) -> Any:
    return _packet(name).default


def _name_below(name: str) -> str:
    """Of the same operator below autograd. It is no interface: nothing that PyTorch traces has it."""
    return f"_{name}_below_autograd"


def _fake(function: Function) -> Callable[..., Any]:
    def body(inputs: Any, parameters: Any, rows: Any) -> Any:
        tag_caches()
        return function.fake(inputs, parameters, rows)

    return function_of(function.interface, body)


def _register_autocast(described: Interface, name: str) -> None:
    for key in ("AutocastCPU", "AutocastCUDA"):
        library.impl(name, when_called(functools.partial(_autocast, described, name, key)), key)


def _autocast(described: Interface, name: str, key: str) -> Callable[..., Any]:
    return autocast_of(described, _operator(name), key)


def _register(native: Library, index: int, is_direct: bool, functions: dict[str, Function]) -> None:
    """Adds to an operator, which the library has registered, what is in Python: fakes, derivatives and autocast.

    These are made when an operator is first called.
    """
    name = native.names[index]
    described, below = interface(*interfaces()[name]), _name_below(name)
    function = functions[name] = Function(described)
    op = _operator(name)
    op._tags = [*op._tags, torch.Tag.pt2_compliant_tag]
    _register_autocast(described, name)
    torch.library.register_fake(f"{NAMESPACE}::{name}", when_called(lambda: _fake(function)), lib=library)

    @functools.cache
    def recorder() -> Recorder:
        rule = _derivative_of(function, functions.get(described.op + "_backward"))
        return Recorder(op, rule, described, compute)

    library.define(below + native.schema(index).removeprefix(name), tags=(torch.Tag.pt2_compliant_tag,))
    _register_autocast(described, below)
    native.implement(index, below)
    library.impl(below, torch.library.fallthrough_kernel, "Autograd")
    library.impl(below, _redirected(op), "Python", with_keyset=True)
    front = Front(described, _packet(name), _operator(below)._op, _raised_as(described, native), recorder)
    front.install(native.function(index, front.otherwise) if is_direct else None)
    compute = _computing(front, native.function(index, None)) if is_direct else front.computed
    library.impl(name, when_called(lambda: recorder().kernel()), "Autograd", with_keyset=True)


def _computing(front: Front, inner: Callable[..., Any]) -> Callable[..., Any]:
    """What computes the operator where nothing but its kernels is left to be called."""

    def compute(*inputs: Any, **named: Any) -> Any:
        result = inner(*inputs, **named)
        return front.computed(*inputs, **named) if result is NotImplemented else result

    return compute


def _redirected(op: Any) -> Callable[..., Any]:
    """Modes and tensors of other classes see the operator itself."""
    below = torch._C._AutoDispatchBelowAutograd

    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        with below():
            return op.redispatch(keyset, *args, **kwargs)

    return kernel


def _derivative_of(function: Function, backward: Function | None) -> Derivative | NoDerivative:
    name = function.interface.name
    if function.interface.direction == "backward":
        return NoDerivative(f"{name} has no derivative: second derivatives are not there")
    if backward is None:
        return NoDerivative(f"{name} has no derivative; call it in torch.no_grad()")
    return Derivative(function, backward)


def _raised_as(described: Interface, native: Library) -> Callable[[RuntimeError], BaseException | None]:
    def raised_as(error: RuntimeError) -> BaseException | None:
        raised = native.raised_as(error)
        return raised and with_flag(described, raised)

    is_moved = any(axis.when for _, axes in described.sizes for axis in axes)
    return raised_as if is_moved else native.raised_as


class _Namespace(torch._ops._OpNamespace):
    """Names the operator that is near to one that is not there."""

    __module__ = torch._ops._OpNamespace.__module__  # which names of operators begin with

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            nearest = "" if name.startswith("_") else did_you_mean(name, interfaces())
            raise AttributeError(f"{error}{nearest}") from None


def register_all() -> None:
    tag_caches()
    native = native_library()
    getattr(torch.ops, NAMESPACE).__class__ = _Namespace
    is_direct = has_direct_calls(native)
    functions: dict[str, Function] = {}
    for index in range(len(native.names)):
        _register(native, index, is_direct, functions)
