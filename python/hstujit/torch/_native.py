"""libhstujit_torch.so: it registers the operators with PyTorch when it is loaded, with kernels in C++ (python/native).

A call goes from PyTorch's dispatcher to the launch without Python. What Python adds is here: its default context, its
exceptions and its warnings.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch

from .. import _library
from .._library import error_of
from ..context import default_context, on_default_changed

FILE = "libhstujit_torch.so"
_IN_PYTHON = -1  # the status of a failure in a callback

_CALLBACKS = {
    "context": ctypes.CFUNCTYPE(ctypes.c_void_p),
    "allocate": ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int32),
    "warn": ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p),
    "derivative_follows": ctypes.CFUNCTYPE(ctypes.c_int32),
}


class _Callbacks(ctypes.Structure):
    """hstujit_torch_callbacks of python/native/context.h."""

    _fields_ = list(_CALLBACKS.items())


class _OfThread(threading.local):
    context: Any = None  # of the plan that is being made, which must stay meanwhile
    error: BaseException | None = None  # of a callback
    records = False  # autograd records the call


class Library:
    """The library's functions."""

    def __init__(self, file: str) -> None:
        self.library = ctypes.CDLL(file)
        text = ctypes.c_char_p
        for name, result, arguments in (
            ("refusal", text, []),
            ("failure", text, [ctypes.POINTER(ctypes.c_int32)]),
            ("set_error", None, [text]),
            ("set_callbacks", None, [ctypes.POINTER(_Callbacks)]),
            ("forget", None, []),
            ("keep_plans", None, [ctypes.c_int32]),
        ):
            function = _library.function_of(self.library, "hstujit_torch_" + name)
            function.restype, function.argtypes = result, arguments
        if refusal := self.call("refusal").decode(errors="replace"):
            raise ImportError(f"{FILE}: {refusal}")
        self.of_thread = _OfThread()
        self.callbacks = _Callbacks(*(kind(self.caller(name)) for name, kind in _CALLBACKS.items()))
        self.call("set_callbacks", ctypes.byref(self.callbacks))
        on_default_changed.append(self.forget)

    def call(self, name: str, *arguments: Any) -> Any:
        return getattr(self.library, "hstujit_torch_" + name)(*arguments)

    def forget(self) -> None:
        """Forgets every plan: those from now on are of another context."""
        self.of_thread.context = None
        self.call("forget")

    def caller(self, name: str) -> Callable[..., Any]:
        method, failed = getattr(self, name), None if name == "context" else 1

        def call(*arguments: Any) -> Any:
            try:
                return method(*arguments)
            except BaseException as error:  # ctypes would print it and go on
                self.of_thread.error = error
                self.call("set_error", f"{type(error).__name__}: {error}".encode(errors="replace"))
                return failed

        return call

    def context(self) -> int | None:
        self.of_thread.context = context = default_context()
        return context._handle.value

    def allocate(self, size: int, device: int) -> int:
        torch.empty(size, dtype=torch.uint8, device=torch.device("cuda", device) if device >= 0 else "cpu")
        return 0

    def warn(self, text: bytes) -> int:
        warnings.warn(text.decode(errors="replace"), stacklevel=2)
        return 0

    def derivative_follows(self) -> int:
        return int(self.of_thread.records)

    def raised_as(self, error: RuntimeError) -> BaseException | None:
        """The exception that a kernel of the library stands for with this one, None of PyTorch's own."""
        status = ctypes.c_int32()
        sentence = self.call("failure", ctypes.byref(status)).decode(errors="replace")
        if not status.value or sentence != str(error):
            return None
        found, self.of_thread.error = self.of_thread.error, None
        return found if status.value == _IN_PYTHON else error_of(status.value, sentence)


@functools.cache
def native_library() -> Library:
    file = _library.path().parent / FILE
    if not file.exists():
        raise ImportError(f"hstujit.torch needs {FILE}, which is not in {file.parent}")
    return Library(str(file))
