"""Long calls of the library that Ctrl-C ends.

Python runs a signal's handler on the main thread between two of its instructions, and a call in C is one instruction.
So the call runs on a thread of its own, and the main thread waits for it, and for its progress, in Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import queue
import threading
from collections.abc import Callable
from typing import Any

Progress = Callable[[int, int, str], None]
# Calls the library with the flag that cancels the call, and with what is told of its progress.
Work = Callable[[ctypes.c_int, Progress], Any]

_GRACE_S = 0.5  # in which a call that is cancelled may end before its caller goes on
_PATIENCE_S = 0.2  # between two looks for a signal: a handler that restarts system calls ends no wait


def interruptible(work: Work, progress: Progress | None) -> Any:
    """Returns what ``work`` returns. ``progress`` is called on this thread."""
    cancel = ctypes.c_int()
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    results: list[Any] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(work(cancel, lambda *event: events.put(event)))
        except BaseException as error:
            errors.append(error)
        events.put(None)

    thread = threading.Thread(target=call, name="hstujit", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system has no thread to give
        return work(cancel, progress or (lambda *event: None))
    try:
        while event := _next(events):
            if progress:
                progress(*event)
    except BaseException:
        cancel.value = 1
        thread.join(_GRACE_S)
        raise
    for error in errors:
        raise error
    return results[0]


def _next(events: queue.SimpleQueue[Any]) -> Any:
    while True:
        with contextlib.suppress(queue.Empty):
            return events.get(timeout=_PATIENCE_S)
