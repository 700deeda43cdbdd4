"""The cache of kernels and tuning records."""

from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any

from . import _structs
from ._library import json_of, library, text_of
from ._words import check_type, shown
from .context import Context, context_of
from .errors import InvalidArgumentError


class Cache:
    """The cache of a context, the default one if none is named. Reports are those of docs/reports.md.

    Raises:
        hstujit.errors.CacheError: a folder or a file that cannot be used; the sentence says why.
    """

    def __init__(self, context: Context | None = None) -> None:
        check_type("context", context, (Context, type(None)), "a hstujit.Context, or None")
        self._context = context

    @property
    def _handle(self) -> ctypes.c_void_p:
        return context_of(self._context)._handle

    @property
    def path(self) -> pathlib.Path:
        """The directory that is written.

        Raises:
            hstujit.errors.NotFoundError: there is none.
        """
        return pathlib.Path(text_of(library.hstujit_cache_path, self._handle))

    def list(self) -> dict[str, Any]:
        """The entries of every layer."""
        return json_of(library.hstujit_cache_list, self._handle)

    def verify(self) -> dict[str, Any]:
        """Reads every entry, and names those that are not what was written."""
        return json_of(library.hstujit_cache_verify, self._handle)

    def prune(self, *, max_bytes: int | None = None, nvrtc: str | None = None) -> dict[str, Any]:
        """Removes entries: the least recently used above ``max_bytes``, or those that NVRTC ``nvrtc`` ("13.0") built.

        One of the two is given. What this context has loaded stays, also with ``max_bytes`` of 0.
        """
        if (max_bytes is None) == (nvrtc is None):
            raise InvalidArgumentError(
                f"max_bytes is {shown(max_bytes)} and nvrtc is {shown(nvrtc)}; one of them is given"
            )
        if nvrtc is not None:
            try:
                return json_of(library.hstujit_cache_prune_nvrtc, self._handle, _structs.encode(nvrtc))
            except InvalidArgumentError as error:
                error.args = ("nvrtc" + str(error).removeprefix("version"),)
                raise
        max_bytes = _structs.integer_of("max_bytes", ctypes.c_uint64, max_bytes)
        return json_of(library.hstujit_cache_prune, self._handle, max_bytes)

    def export(self, path: str | os.PathLike[str], *, op: str | None = None) -> dict[str, Any]:
        """Writes kernels and records, of operator ``op`` alone if it is named, into one file.

        Those of a program, such as ``"stu_layer"``, are those of its steps' operators. A bundle that is there is
        replaced, and no other file, nor one that the cache consists of.
        """
        options = _structs.CacheExportOptions(op=op)
        return json_of(library.hstujit_cache_export, self._handle, _structs.encode(path), ctypes.byref(options))

    def import_(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Puts what a file of :meth:`export` holds into the cache, or nothing if the file is damaged."""
        return json_of(library.hstujit_cache_import, self._handle, _structs.encode(path))


__all__ = ["Cache"]
