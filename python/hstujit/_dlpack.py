"""Arrays of any framework as DLTensors, by the DLPack protocol."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from ._structs import DLManagedTensorVersioned, DLTensor
from ._words import cut
from .errors import InvalidArgumentError

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_READ_ONLY = 1
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


class Tensor:
    """A view of an array. It holds the array for as long as it lives.

    ``operator`` is the operator of PyTorch that does the same and has gradients, if there is one.
    """

    __slots__ = ("array", "_capsule", "dl_tensor", "read_only", "shape")

    def __init__(self, name: str, array: Any, stream: int | None = None, operator: str = "") -> None:
        self.array = _without_gradient(name, array, operator)
        self._capsule = _capsule_of(name, self.array, stream)
        if _is_valid(self._capsule, b"dltensor_versioned"):
            managed = DLManagedTensorVersioned.from_address(_pointer(self._capsule, b"dltensor_versioned"))
            if managed.major != 1:
                raise InvalidArgumentError(f"{name} speaks DLPack {managed.major}; 0 and 1 are known")
            self.dl_tensor, self.read_only = managed.dl_tensor, bool(managed.flags & _READ_ONLY)
        elif not _is_valid(self._capsule, b"dltensor"):
            raise InvalidArgumentError(f"{name} cannot be exchanged by DLPack: its __dlpack__ returned no capsule")
        else:
            self.dl_tensor, self.read_only = DLTensor.from_address(_pointer(self._capsule, b"dltensor")), False
        rank = self.dl_tensor.ndim
        self.shape = tuple(self.dl_tensor.shape[:rank]) if rank else ()

    @property
    def address(self) -> int:
        return ctypes.addressof(self.dl_tensor)

    @property
    def data(self) -> int:
        return (self.dl_tensor.data or 0) + self.dl_tensor.byte_offset


def _without_gradient(name: str, array: Any, operator: str) -> Any:
    """PyTorch exports no tensor that requires a gradient. One is lost where PyTorch records none, and only there."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor) or not array.requires_grad:
        return array
    if torch.is_grad_enabled():
        advice = f"call {operator}, which computes one (import hstujit.torch), or this" if operator else "call it"
        raise InvalidArgumentError(f"{name} requires a gradient, and no gradient follows; {advice} in torch.no_grad()")
    return array.detach()


def _capsule_of(name: str, array: Any, stream: int | None) -> Any:
    export = getattr(array, "__dlpack__", None)
    if export is None:
        kind = type(array).__name__
        raise InvalidArgumentError(f"{name} is of type {kind}; it must be an array with __dlpack__, such as numpy's")
    # PyTorch exports the memory of such a view as it is, and refuses that of a conjugate one itself.
    if getattr(array, "is_neg", bool)():
        raise InvalidArgumentError(f"{name} has the negative bit of PyTorch; it must have none: Tensor.resolve_neg()")
    if _is_masked(array):
        raise InvalidArgumentError(
            f"{name} is a masked array, and DLPack knows of no mask; pass what MaskedArray.filled() gives"
        )
    options = {} if stream is None else {"stream": stream}
    try:
        try:
            return export(max_version=(1, 0), **options)
        except TypeError:  # of the protocol before 1.0
            return export(**options)
    except Exception as error:  # whatever the array's class raises
        raise _not_exchanged(name, error) from error


def _is_masked(array: Any) -> bool:
    """Whether some of the elements do not count, which nothing in the exchanged memory says."""
    numpy_ma = sys.modules.get("numpy.ma")  # of whoever has made one
    return numpy_ma is not None and isinstance(array, numpy_ma.MaskedArray)


def _not_exchanged(name: str, error: Exception) -> Exception:
    if isinstance(error, MemoryError):
        return error
    return InvalidArgumentError(f"{name} cannot be exchanged by DLPack: {type(error).__name__}: {cut(str(error))}")


def device_of(name: str, array: Any) -> tuple[int, int]:
    """Type and number of the array's device; host memory for what is no array, which Tensor refuses."""
    find = getattr(array, "__dlpack_device__", None)
    if find is None:
        return CPU, 0
    try:
        device_type, number = find()
        return int(device_type), int(number)
    except Exception as error:  # whatever the array's class raises, or gives that is no device
        raise _not_exchanged(name, error) from error


def backend_of(name: str, device: tuple[int, int]) -> str:
    if device[0] in (CPU, CUDA_HOST):
        return "host"
    if device[0] in (CUDA, CUDA_MANAGED):
        return "cuda"
    raise InvalidArgumentError(
        f"{name} is on a device of DLPack type {device[0]}; allowed: host memory (1, 3) and CUDA memory (2, 13)"
    )
