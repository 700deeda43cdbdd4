"""A context: cache directories, what happens on a miss, and the kernels that are loaded."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from . import _structs
from ._library import Owner, created, json_of, library, text_of
from ._words import check_type, not_allowed, shown
from .errors import InvalidArgumentError

Log = Callable[[str, str], None]

MOST_CALLS = 1024  # that a context keeps for functions before it forgets all of them; each keeps the ops it launches
_logs: list[Any] = []  # callbacks: an op that outlives its context may yet call one


class Context(Owner, destroy=library.hstujit_context_destroy):
    """Cache layers, policy and compiled kernels. Any thread may use it.

    Args:
        cache_dir: where kernels are kept. None or ``""``: ``HSTUJIT_CACHE_DIR``, else ``$XDG_CACHE_HOME/hstujit``, else
            ``$HOME/.cache/hstujit``.
        cache_path: read-only layers, directories or bundles: one path, a list of them, or a text in which ``:``
            separates them. None: ``HSTUJIT_CACHE_PATH``.
        on_miss: ``"heuristic"`` compiles the expected best kernel, ``"tune"`` measures first, ``"fail"`` raises
            :class:`hstujit.errors.CacheMissError`. None: ``HSTUJIT_ON_MISS``.
        deterministic: only kernels whose results have the same bits every time. False: ``HSTUJIT_DETERMINISTIC``.
        log: called with the category and the line of each event. None: standard error, for ``HSTUJIT_LOG``.

    Raises:
        hstujit.errors.Error: a value or an environment variable that is not allowed.
    """

    def __init__(
        self,
        *,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
        on_miss: str | None = None,
        deterministic: bool = False,
        log: Log | None = None,
    ) -> None:
        if on_miss not in _structs.ON_MISS:
            raise InvalidArgumentError(not_allowed("on_miss", on_miss, filter(None, _structs.ON_MISS)) + ", or None")
        callback = _structs.LogCallback()
        if log:
            texts = functools.partial(bytes.decode, errors="replace")
            callback = _structs.LogCallback(lambda _, *event: log(*map(texts, event)))
            _logs.append(callback)
        options = _structs.ContextOptions(
            cache_dir=cache_dir,
            cache_path=_separated(cache_path),
            on_miss=_structs.ON_MISS[on_miss],
            log=callback,
            deterministic=bool(deterministic),
        )
        self._calls: dict[Any, Any] = {}  # by what their instances follow from
        self._handle = created(library.hstujit_context_create, ctypes.byref(options))

    def doctor(self) -> dict[str, Any]:
        """What the machine has and lacks: driver, NVRTC, libraries, caches, GPUs (docs/reports.md)."""
        return json_of(library.hstujit_doctor, self._handle)

    def stats(self) -> dict[str, Any]:
        """What calls did so far: look-ups of kernels, compiles, tunings, launches (docs/reports.md, "stats")."""
        return json_of(library.hstujit_stats, self._handle, b"json")

    def prometheus(self) -> str:
        """The same as a page of Prometheus' text format."""
        return text_of(library.hstujit_stats, self._handle, b"prometheus")


def _separated(cache_path: Any) -> str | None:
    """As ``HSTUJIT_CACHE_PATH`` has it. A list of none is the variable's opposite: no layer."""
    if cache_path is None or isinstance(cache_path, str):
        return cache_path
    names = [os.fsdecode(path) for path in ([cache_path] if isinstance(cache_path, os.PathLike) else cache_path)]
    for name in names:
        if not name:
            raise InvalidArgumentError("cache_path has an empty path; each layer must be a directory or a bundle")
        if ":" in name:
            raise InvalidArgumentError(f"cache_path has {shown(name)}; a path with ':' cannot be one of several layers")
    return ":".join(names)


_default: Context | None = None
_default_lock = threading.Lock()
on_default_changed: list[Callable[[], None]] = []  # called when calls are to use another context


def default_context() -> Context:
    """The context of every call that names none, made by the first one."""
    global _default
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = Context()
    return _default


def set_default_context(context: Context) -> None:
    """Calls that name no context use this one from now on."""
    global _default
    check_type("context", context, Context, "a hstujit.Context")
    with _default_lock:
        _default = context
    for changed in on_default_changed:
        changed()


def context_of(context: Context | None) -> Context:
    """The one that a call names, else the default one."""
    check_type("context", context, (Context, type(None)), "a hstujit.Context, or None")
    return context or default_context()


__all__ = ["Context", "default_context", "set_default_context"]
