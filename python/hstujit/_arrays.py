"""Arrays of any framework: as DLTensors, by the DLPack protocol, and new ones, with the current stream."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import sys
from typing import Any

from ._structs import DLManagedTensorVersioned, DLTensor
from ._words import cut
from .errors import InvalidArgumentError, OutOfMemoryError

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_READ_ONLY = 1
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_FRAMEWORKS = ("torch", "numpy", "cupy", "jax")
_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


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
    # Exchanged memory does not say which elements of a masked array do not count.
    numpy_ma = sys.modules.get("numpy.ma")
    if numpy_ma is not None and isinstance(array, numpy_ma.MaskedArray):
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


def framework_of(array: Any) -> str:
    """The framework of the array's class, or of the nearest one that it derives from; else its module."""
    roots = [part.__module__.partition(".")[0] for part in type(array).__mro__]
    roots = ["jax" if root == "jaxlib" else root for root in roots]
    return next((root for root in roots if root in _FRAMEWORKS), roots[0])


def empty(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A new array in the framework, and on the device, of another one. Its elements have no value yet."""
    try:
        return _empty(like, shape, dtype)
    except InvalidArgumentError:
        raise
    except (MemoryError, RuntimeError) as error:  # PyTorch and JAX say it with the latter
        raise OutOfMemoryError(f"there is no memory for an array of shape {shape} and data type {dtype}") from error


def _empty(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    framework, name = framework_of(like), _NAMES.get(dtype, dtype)
    if framework not in _FRAMEWORKS:
        raise InvalidArgumentError(
            f"arrays of {framework} cannot be made here: pass out, of shape {shape} and data type {dtype}"
        )
    if framework == "numpy" and name == "bfloat16":
        raise InvalidArgumentError("the result is bf16, which numpy has not; pass float16 or float32, or out")
    module = importlib.import_module("jax.numpy" if framework == "jax" else framework)
    if framework == "torch":
        return module.empty(shape, dtype=getattr(module, name), device=like.device)
    if framework == "jax":
        # Nobody else has the buffer, so it may be written before it is given away; not before JAX has filled it.
        return module.empty(shape, dtype=name, device=like.device).block_until_ready()
    return module.empty(shape, dtype=name)


@contextlib.contextmanager
def on_device(like: Any) -> Any:
    """The array's GPU is the current one. Gives the address of the framework's current stream on it."""
    framework = framework_of(like)
    if framework == "torch":
        torch = importlib.import_module("torch")
        with torch.cuda.device(like.device):
            yield torch.cuda.current_stream(like.device).cuda_stream
    elif framework == "cupy":
        cupy = importlib.import_module("cupy")
        with like.device:
            yield cupy.cuda.get_current_stream().ptr
    else:
        raise InvalidArgumentError(
            f"the current stream of {framework} is not known here; use hstujit.Op, whose launch takes a stream"
        )
