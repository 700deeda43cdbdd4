"""Exceptions, one for each status of the C library that says what went wrong.

Their text is the library's sentence. It names the argument, its value and what is allowed.
"""

from __future__ import annotations

from typing import Any


class Error(RuntimeError):
    """Base of all errors of the library.

    Attributes:
        report: the JSON report of a command that failed in part, such as :func:`hstujit.prewarm`, else None.
        argument, value, allowed, hint: parts of the sentence, "" where it has no such part: ``"q.shape[1]"``, ``"7"``,
            ``"heads, from 1 to 1024"``, and what may be done.
    """

    report: dict[str, Any] | None = None
    argument = value = allowed = hint = ""


class InvalidArgumentError(Error, ValueError):
    """An argument that the operator does not take: its shape, data type, device, alignment or value."""


class InvalidConfigError(Error, ValueError):
    """A config with mistakes: one line for each, with file, line and column."""


class UnsupportedError(Error):
    """A combination that no kernel has."""


class NotFoundError(Error, LookupError):
    """A name or a file that is not there."""


class NoDriverError(Error):
    """There is no CUDA driver."""


class NoCompilerError(Error):
    """A kernel would have to be compiled, and NVRTC or the compiler library is missing or unusable."""


class NoHostBackendError(NoCompilerError):
    """The host backend, which computes on the CPU, is missing or unusable. The library's status is that of its base."""


class NoDeviceError(Error):
    """There is no GPU of that number, or none that the library has kernels for."""


class CompileError(Error):
    """A kernel was not compiled."""


class DriverError(Error):
    """The CUDA driver refused a call."""


class CacheMissError(Error):
    """No cache holds the kernel, and ``on_miss`` is ``"fail"``."""


class NotPreparedError(Error):
    """A launch without ``prepare`` for its ``max_seq_len`` and device."""


class OutOfMemoryError(Error, MemoryError):
    """There was not enough memory."""


class CheckError(Error):
    """A check did not pass; the report says which."""


class CacheError(Error, OSError):
    """A file or a folder could not be read or written."""


class InternalError(Error):
    """A fault of the library itself."""


class CancelledError(Error):
    """A command was cancelled before it was done."""


# By the number of a hstujit_status, in whose order the classes stand. NoHostBackendError shares that of its base.
BY_STATUS: dict[int, type[Error]] = dict(enumerate(Error.__subclasses__(), start=1))


class NotCopyableError(Error, TypeError):
    """A context, a config or an op was to be copied or pickled."""
