"""Asks the framework that an array is of for new arrays, and on a GPU for the current stream."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

from .errors import InvalidArgumentError, OutOfMemoryError

_FRAMEWORKS = ("torch", "numpy", "cupy", "jax")
_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


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
