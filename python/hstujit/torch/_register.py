"""Every operator of the library as ``torch.ops.hstujit.*``.

All of it follows from the interface of each operator, as the functions for arrays do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .._instances import with_flag
from .._interface import Interface, interface, interfaces
from .._words import did_you_mean
from ._autocast import autocast_of
from ._autograd import Derivative, NoDerivative, Recorder
from ._build import tag_caches
from ._direct import DirectCalls, direct_calls
from ._launch import Launcher
from ._native import Library, native_library
from ._schema import NAMESPACE, function_of, schema_of, when_called
from ._shapes import check_shapes

library = torch.library.Library(NAMESPACE, "DEF")


def _packet(name: str) -> Any:
    return getattr(getattr(torch.ops, NAMESPACE), name)


def _operator(name: str) -> Any:
    return _packet(name).default


def _name_below(name: str) -> str:
    """Of the same operator below autograd. It is no interface: nothing that PyTorch traces has it."""
    return f"_{name}_below_autograd"


def _fake(launcher: Launcher) -> Callable[..., Any]:
    def body(inputs: Any, parameters: Any, rows: Any) -> Any:
        tag_caches()
        launcher.check_devices(inputs)
        plan = launcher.plan(inputs, parameters)
        check_shapes(plan.signature, dict(zip(launcher.positions, inputs)))

        def read_rows(name: str) -> Any:
            return torch.library.get_ctx().new_dynamic_size()

        outputs = launcher.allocate(plan, inputs, rows, read_rows)
        return launcher.all_outputs(plan, outputs, inputs[launcher.first])

    return function_of(launcher.interface, body)


def _autocast(described: Interface, name: str, key: str) -> Callable[..., Any]:
    return when_called(lambda: autocast_of(described, _operator(name), key))


def _define(described: Interface, name: str) -> None:
    library.define(schema_of(described, name), tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("AutocastCPU", "AutocastCUDA"):
        library.impl(name, _autocast(described, name, key), key)


def _register(
    described: Interface, native: Library | None, calls: DirectCalls | None, launchers: dict[str, Launcher]
) -> None:
    """Registers an operator with its schema, kernels, fake implementation, derivative and autocast.

    Fakes, autocast and derivatives are made when an operator is first called.
    """
    name = described.name
    launcher = launchers[name] = Launcher(described)
    _define(described, name)
    torch.library.register_fake(f"{NAMESPACE}::{name}", when_called(lambda: _fake(launcher)), lib=library)

    @functools.cache
    def recorder() -> Recorder:
        rule = _derivative_of(launcher, launchers.get(described.op + "_backward"))
        return Recorder(_operator(name), rule, described, compute)

    if native is None:
        compute = function_of(described, launcher.run)
        for key in ("CPU", "CUDA"):
            library.impl(name, compute, key)
    else:
        compute = _register_native(launcher, native, calls, recorder)
    library.impl(name, when_called(lambda: recorder().kernel()), "Autograd", with_keyset=True)


def _register_native(
    launcher: Launcher, native: Library, calls: DirectCalls | None, recorder: Callable[[], Recorder]
) -> Callable[..., Any]:
    """Registers kernels in C++. What computes the operator where nothing but its kernels is left to be called."""
    from ._front import Front  # of functions that PyTorch 2.10 has

    described = launcher.interface
    name, below = described.name, _name_below(described.name)
    _define(described, below)
    index = native.add(launcher, [name, below])
    library.impl(below, torch.library.fallthrough_kernel, "Autograd")
    library.impl(below, _redirected(_operator(name)), "Python", with_keyset=True)
    op = _operator(below)._op
    front = Front(described, _packet(name), op, _raised_as(described, native), recorder)
    if calls is None:
        front.install(None)
        return front.computed
    direct, inner = calls.functions(index, front.otherwise)
    front.install(direct)

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


def _derivative_of(launcher: Launcher, backward: Launcher | None) -> Derivative | NoDerivative:
    name = launcher.interface.name
    if launcher.interface.direction == "backward":
        return NoDerivative(f"{name} has no derivative: second derivatives are not there")
    if backward is None:
        return NoDerivative(f"{name} has no derivative; call it in torch.no_grad()")
    return Derivative(launcher, backward)


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


def register_all() -> str:
    """``"native"`` where kernels are in C++, else ``"python"``."""
    tag_caches()
    getattr(torch.ops, NAMESPACE).__class__ = _Namespace
    native = native_library()
    calls = direct_calls(native) if native is not None else None
    launchers: dict[str, Launcher] = {}
    for where in interfaces().values():
        _register(interface(*where), native, calls, launchers)
    return "native" if native is not None else "python"
