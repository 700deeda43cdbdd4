"""Every operator of the library as ``torch.ops.hstujit.*``.

libhstujit_torch.so registers schemas and kernels. Here are derivatives, fake implementations and autocast, which follow
from the interface of each operator, and the exceptions of this package in place of PyTorch's.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from .. import _library
from .._interface import Interface, interface, interfaces
from ..errors import Error, InvalidArgumentError
from ._autograd import Derivative, Recorder, any_requires_grad, below_autograd
from ._native import FILE, Library, native_library
from ._schema import DECLARED, NAMESPACE, OPERATORS, by_name, operator_of, positional
from ._traced import Function

library = torch.library.Library(NAMESPACE, "FRAGMENT")
_frames: Any = torch._C._dynamo.eval_frame  # in C: this does not import torch._dynamo


def _when_called(make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """A function that is made by its first call: a process calls few of the functions that PyTorch wants registered."""
    made = functools.cache(make)
    return lambda *args, **kwargs: made()(*args, **kwargs)


def _register(native: Library, name: str, functions: dict[str, Function]) -> None:
    described, op = interface(*interfaces()[name]), operator_of(name)
    function = functions[name] = Function(described)

    def fake(*args: Any, **kwargs: Any) -> Any:
        _tag_caches()
        return function.fake(by_name(name, args, kwargs))

    @functools.cache
    def recorder() -> Recorder:
        return Recorder(op, _derivative_of(function, functions.get(described.op + "_backward")), native.of_thread)

    op._tags = [*op._tags, torch.Tag.pt2_compliant_tag]
    for key in ("AutocastCPU", "AutocastCUDA"):
        library.impl(name, _when_called(functools.partial(_autocast_of, described, key)), key)
    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=library)
    library.impl(name, _when_called(lambda: recorder().kernel), "Autograd", with_keyset=True)
    for called in (op, getattr(OPERATORS, name)):
        _put_in_front(native, called, recorder, frozenset(positional(name)))


def _derivative_of(function: Function, backward: Function | None) -> Derivative | str:
    name = function.interface.name
    if function.interface.direction == "backward":
        return f"{name} has no derivative: second derivatives are not there"
    return Derivative(function, backward) if backward else f"{name} has no derivative; call it in torch.no_grad()"


def _put_in_front(native: Library, op: Any, recorder: Callable[[], Recorder], positional: frozenset[str]) -> None:
    """Makes calls raise the exception of this package that a RuntimeError of a kernel in C++ stands for.

    The kernels for autograd's keys are in Python, and to go from the dispatcher to one takes 4 us. So where nothing but
    autograd may have a say in a call, it is recorded, or not, before the dispatcher is asked.
    """
    kind, run, schema = type(op), op._op, getattr(op, "default", op)._schema
    flags = frozenset(argument.name for argument in schema.arguments if str(argument.type) == "bool")

    def call(_: Any, /, *args: Any, **kwargs: Any) -> Any:
        for name in flags.intersection(kwargs) if kwargs else ():
            if kwargs[name] is None:  # which PyTorch takes for False, also where the default is True
                raise InvalidArgumentError(f"{name} is None; it must be True or False")
        try:
            tensors = (*args, *kwargs.values(), *(kwargs.get(DECLARED) or ())) if kwargs else args
            if _is_anything_in_force() or torch._C._has_torch_function(tensors):
                return run(*args, **kwargs)
            if not (torch.is_grad_enabled() and any_requires_grad(*tensors)):
                with below_autograd():
                    return run(*args, **kwargs)
            if torch._C._is_any_autocast_enabled() or not positional.isdisjoint(kwargs):
                return run(*args, **kwargs)
            return recorder().record(run, kwargs, args)
        except Error:
            raise
        except RuntimeError as error:
            raise (native.raised_as(error) or error) from None

    # Behind a break of a graph torch.compile would compile this, and what it calls.
    skip = _frames._FrameAction.SKIP
    _frames.set_code_exec_strategy(call.__code__, _frames._FrameExecStrategy(skip, skip))
    op.__class__ = type(kind.__name__, (kind,), {"__call__": call})


def _is_anything_in_force() -> bool:
    """Whether more than autograd and autocast may have a say in a call."""
    state = torch._C
    return bool(
        state._len_torch_dispatch_stack()
        or state._len_torch_function_stack()
        or state._are_functorch_transforms_active()
        or state._is_tracing()
        or state._dispatch_tls_is_dispatch_key_included(state.DispatchKey.PythonDispatcher)
        or forward_ad._current_level >= 0
    )


def _autocast_of(described: Interface, key: str) -> Callable[..., Any]:
    """Operators with matrix products compute in the data type of autocast, others in the widest one of their inputs.

    What has products has the precision of those in fp32 among its parameters. Weights of norms may stay fp32.
    """
    names, weights = described.dtypes.get("dtype", ()), described.dtypes.get("weight_dtype", ())
    lowers = any(parameter.name == "precision" for parameter in described.parameters)
    device = "cuda" if key == "AutocastCUDA" else "cpu"
    excluded = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    op = operator_of(described.name)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        values = by_name(described.name, args, kwargs)
        floats = [name for name in names if values[name] is not None and values[name].is_floating_point()]
        if floats:
            widest = functools.reduce(torch.promote_types, [values[name].dtype for name in floats])
            target = torch.get_autocast_dtype(device) if lowers else widest
            for name in (*floats, *weights):
                value = values[name]
                if value is not None and value.is_floating_point() and (name in floats or value.dtype != torch.float32):
                    values[name] = value.to(target)
        with torch._C._ExcludeDispatchKeyGuard(excluded):
            return op(**values)

    return kernel


@functools.cache
def _digest() -> str:
    """Of this build: of the package's sources and of the libraries that it calls."""
    files = [*sorted(_library.PACKAGE.rglob("*.py")), _library.path(), _library.path().parent / FILE]
    hashed = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        hashed.update(f"{file.name} {len(content)}\n".encode() + content)
    return hashed.hexdigest()[:16]


def _tag_caches() -> None:
    """Appends the digest to ``torch.compiler.config.cache_key_tag``, unless it is there.

    torch.compile keeps graphs on disk by what it traced. One with operators of this package also depends on their
    derivatives, fake implementations and kernels, of which PyTorch sees nothing. Each trace of an operator calls this,
    too, because a model may have set another tag since the import.
    """
    config = torch.compiler.config
    own = f"hstujit-{_digest()}"
    if own not in config.cache_key_tag:
        config.cache_key_tag = f"{config.cache_key_tag} {own}".lstrip()


def register_all() -> None:
    _tag_caches()
    native = native_library()
    functions: dict[str, Function] = {}
    for name in interfaces():
        _register(native, name, functions)
