"""Types for annotations."""

from __future__ import annotations

from typing import Any, Protocol


class Array(Protocol):
    """Whatever speaks DLPack: arrays of numpy, PyTorch, CuPy, JAX."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, Any]: ...
