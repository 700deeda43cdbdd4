"""Calls that do not go through PyTorch's dispatcher, whose reading of twenty arguments takes two of five us.

A function of libhstujit_torch.so, which Python calls as any of its own in C, reads tensors through PyTorch's
DLPackExchangeAPI, and launches. Where anything but the operator's kernels has a say in a call, autograd, a mode or a
transform, where an argument is not of the plainest type, and where a call fails, a function in Python is asked instead.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from .._library import function_of
from . import _native_structs as structs
from ._guards import guards, overrides_of, profilers, registered_kernels
from ._native import KINDS, Library
from ._schema import Entry, keywords, positional

_FASTCALL_WITH_KEYWORDS = 0x80 | 0x02  # METH_FASTCALL | METH_KEYWORDS

# Whether autograd is to record the call; why it failed, or None; its arguments, and its keywords.
Otherwise = Callable[[bool, "str | None", "tuple[Any, ...]", "dict[str, Any]"], Any]


def _kept(lent: Any) -> Any:
    """The same, for ever: functions of the library may be called until the process has ended."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(lent))
    return lent


def _address(lent: Any) -> int:
    return id(_kept(lent))


def _view_function() -> int:
    """The address of what describes a tensor as a DLTensor; 0 before PyTorch 2.10."""
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if type(capsule).__name__ != "PyCapsule":
        return 0
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        api = structs.ExchangeApi.from_address(pointer(capsule, b"dlpack_exchange_api"))
    except ValueError:  # a capsule of another name
        return 0
    return (api.dltensor_from_py_object_no_sync or 0) if api.major == 1 else 0


class DirectCalls:
    """Makes functions of the operators that a library knows."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.call = ctypes.cast(function_of(library.library, "hstujit_torch_call"), ctypes.c_void_p).value
        self.make = ctypes.pythonapi.PyCFunction_NewEx
        self.make.restype = ctypes.py_object
        self.make.argtypes = [ctypes.POINTER(structs.MethodDef), ctypes.py_object, ctypes.c_void_p]

    def functions(self, index: int, otherwise: Otherwise) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Two functions that call an operator, with the arguments of its schema.

        The first one is for anyone. The second one is for where it is known already that nothing but the operator's
        kernels is left to be called: it returns NotImplemented where it would have to ask.
        """
        interface = self.library.operators[index].interface
        in_order, named = positional(interface), keywords(interface)
        entries = in_order + named
        overrides = [_address(sys.intern(kernel)) for kernel in overrides_of(interface.name)]
        described = structs.Names(
            names=structs.array(ctypes.c_void_p, (_address(sys.intern(name)) for name, _, _ in entries)),
            defaults=structs.array(structs.Value, (_default(entry) for entry in entries)),
            positional=len(in_order),
            override_count=len(overrides),
            overrides=structs.array(ctypes.c_void_p, overrides),
            otherwise=_address(otherwise),
        )
        self.library._set_names(index, ctypes.byref(described))
        method = _kept(structs.MethodDef(interface.name.encode(), self.call, _FASTCALL_WITH_KEYWORDS, None))
        return self.make(ctypes.byref(method), index, None), self.make(ctypes.byref(method), -1 - index, None)


def direct_calls(library: Library) -> DirectCalls | None:
    """None where this PyTorch has not what they need."""
    view = _view_function()
    take = getattr(getattr(torch._C, "_aoti", None), "alloc_tensors_by_stealing_from_void_ptrs", None)
    if not view or take is None:
        return None
    try:
        listing = [_address(guard) for guard in profilers()]
        deciding = [_address(guard) for guard in (*guards(), torch._C._is_any_autocast_enabled)]
    except AttributeError:
        return None
    python = structs.Python(
        **{name: _address(value) for name, value in {
            "none": None, "not_implemented": NotImplemented, "true_": True, "false_": False,
            "tensor": torch.Tensor, "parameter": torch.nn.Parameter, "float_": float, "int_": int, "str": str,
            "runtime_error": RuntimeError, "level_of": forward_ad, "level": "_current_level",
            "is_grad_enabled": torch.is_grad_enabled, "requires_grad": "requires_grad",
            "is_neg": torch.Tensor.is_neg, "kernels": registered_kernels, "tensors_from_handles": take,
        }.items()},
        guard_count=len(listing) + len(deciding),
        profiler_count=len(listing),
        guards=structs.array(ctypes.c_void_p, listing + deciding),
        dltensor_from_py_object=view,
    )  # fmt: skip
    return None if library._open_python(ctypes.byref(python)) else DirectCalls(library)


def _default(entry: Entry) -> structs.Value:
    _, type_, default = entry
    if default is ...:
        return structs.Value(kind=structs.REQUIRED)
    if default is None:
        return structs.Value(kind=structs.NONE)
    value = structs.Value(kind=KINDS[type_.rstrip("?")])
    if value.kind == structs.REAL:
        value.real = default
    elif value.kind == structs.TEXT:
        text = _kept(ctypes.create_string_buffer(default.encode()))
        value.text, value.size = ctypes.addressof(text), len(text.value)
    else:
        value.integer = default
    return value
