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


class _Ended:
    def __init__(self, result: Any, error: BaseException | None) -> None:
        self.result, self.error = result, error


def interruptible(work: Work, progress: Progress | None) -> Any:
    """Returns what ``work`` returns. ``progress`` is called on this thread."""
    cancel = ctypes.c_int()
    if threading.current_thread() is not threading.main_thread():
        return _on_this_thread(work, cancel, progress)
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def call() -> None:
        try:
            ended = _Ended(work(cancel, lambda *event: events.put(event)), None)
        except BaseException as error:
            ended = _Ended(None, error)
        events.put(ended)

    thread = threading.Thread(target=call, name="hstujit", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system has no thread to give
        return _on_this_thread(work, cancel, progress)
    try:
        while not isinstance(event := _next(events), _Ended):
            if progress:
                progress(*event)
    except BaseException:
        cancel.value = 1
        thread.join(_GRACE_S)
        raise
    if event.error is not None:
        raise event.error
    return event.result


def _next(events: queue.SimpleQueue[Any]) -> Any:
    while True:
        with contextlib.suppress(queue.Empty):
            return events.get(timeout=_PATIENCE_S)


def _on_this_thread(work: Work, cancel: ctypes.c_int, progress: Progress | None) -> Any:
    """No signal reaches this thread. ctypes would print what ``progress`` raises, and go on."""
    raised: list[BaseException] = []

    def report(done: int, total: int, what: str) -> None:
        try:
            if progress and not raised:
                progress(done, total, what)
        except BaseException as error:
            raised.append(error)
            cancel.value = 1

    try:
        return work(cancel, report)
    finally:
        if raised:
            raise raised[0]  # before an error of the library, which becomes its context
