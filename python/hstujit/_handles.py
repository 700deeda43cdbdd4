"""Handles of the C library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .errors import NotCopyableError


class Owner:
    """Base of what has a handle. It destroys it, so there is no second one: it is neither copied nor pickled."""

    _destroy: ClassVar[Any]  # a function of the library
    _handle: Any = None

    def __init_subclass__(cls, destroy: Callable[[Any], None] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if destroy is not None:
            cls._destroy = destroy

    def __del__(self) -> None:
        if handle := self.__dict__.pop("_handle", None):
            self._destroy(handle)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise NotCopyableError(
            f"a hstujit.{type(self).__name__} has a handle of the library: it is neither copied nor pickled; "
            "make another one from the same arguments"
        )


__all__ = ["Owner"]
