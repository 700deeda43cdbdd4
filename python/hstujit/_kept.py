"""What a context keeps of its calls, in bounded number."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """Values by key. The least recently used one is forgotten when there are too many.

    Args:
        most: how many it keeps, 1 or more.

    Any thread may use it. A value that is forgotten lives on for as long as a caller has it.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.RLock()  # a finalizer may make a call on the thread that has it

    def get(self, key: Hashable) -> Value | None:
        value = self._values.get(key)
        if value is not None:
            try:
                self._values.move_to_end(key)
            except KeyError:  # another thread has made it be forgotten
                pass
        return value

    def keep(self, key: Hashable, value: Value) -> Value:
        """Keeps the value, and returns it, unless another thread was first: then the other thread's value."""
        forgotten = []  # finalizers run after the lock is given back
        with self._lock:
            kept = self._values.setdefault(key, value)
            while len(self._values) > self.most:
                forgotten.append(self._values.popitem(last=False))
        return kept

    def __len__(self) -> int:
        return len(self._values)


__all__ = ["Kept"]
