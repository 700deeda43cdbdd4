"""Arrays of any framework as DLTensors, by the DLPack protocol."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from ._structs import DLManagedTensorVersioned, DLTensor
from ._words import cut, with_article
from .errors import InvalidArgumentError

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_READ_ONLY = 1
# By DLPack's number; those of the library's sentences (runtime/launch/arguments_explain.cpp).
_WITH_BITS = {0: "int", 1: "uint", 2: "fp", 3: "handle", 4: "bf", 5: "complex"}
_WHOLE = {
    6: "bool",
    7: "float8_e3m4",
    8: "float8_e4m3",
    9: "float8_e4m3b11fnuz",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
    15: "float6_e2m3fn",
    16: "float6_e3m2fn",
    17: "float4_e2m1fn",
}

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


class Tensor:
    """A view of an array. It holds the array for as long as it lives.

    ``operator`` is the operator of PyTorch that does the same and has gradients, if there is one.
    """

    __slots__ = ("array", "_capsule", "dl_tensor", "read_only", "shape", "strides", "dtype", "device")

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
        tensor, rank = self.dl_tensor, self.dl_tensor.ndim
        self.shape = tuple(tensor.shape[:rank]) if rank else ()
        self.strides = tuple(tensor.strides[:rank]) if rank and tensor.strides else _contiguous(self.shape)
        self.dtype = dtype_name(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
        self.device = (tensor.device.device_type, tensor.device.device_id)

    @property
    def address(self) -> int:
        return ctypes.addressof(self.dl_tensor)

    @property
    def data(self) -> int:
        return (self.dl_tensor.data or 0) + self.dl_tensor.byte_offset

    @property
    def alignment_bits(self) -> int:
        """Address and strides in bytes, or-ed: aligned to what this is a multiple of."""
        size = max(self.dl_tensor.dtype.bits // 8, 1)
        bits = self.data
        for length, stride in zip(self.shape[:-1], self.strides[:-1]):
            if length != 1:
                bits |= stride * size
        return bits


def dtype_name(code: int, bits: int, lanes: int = 1) -> str:
    unknown = f"DLPack type {code} of {bits} bits"
    name = f"{_WITH_BITS[code]}{bits}" if code in _WITH_BITS else _WHOLE.get(code, unknown)
    return name if lanes == 1 else f"{name}x{lanes}"


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
        kind = with_article(type(array).__name__)
        raise InvalidArgumentError(
            f"{name} is {kind}; it must be an array with __dlpack__: of numpy, PyTorch, CuPy or JAX"
        )
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


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


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
