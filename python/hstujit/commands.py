"""Work on whole configs. Each function returns the JSON report of docs/reports.md as a dict.

An error that left a report has it as ``error.report``.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _structs
from ._interrupt import Progress, interruptible
from ._library import json_of, library
from .config import Config
from .context import Context, context_of

Shard = tuple[int, int]
Path = str | os.PathLike[str]
Source = Config | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]


def _call(function: Any, config: Source, context: Context | None, **options: Any) -> Any:
    config = config if isinstance(config, Config) else Config(config)
    run_options = _structs.RunOptions(**options)
    return json_of(function, context_of(context)._handle, config._handle, ctypes.byref(run_options))


def _call_until_interrupted(
    function: Any, config: Source, context: Context | None, progress: Progress | None, shard: Shard, **options: Any
) -> Any:
    """Calls a function whose work takes long. An exception ends the work: KeyboardInterrupt, or one of ``progress``."""
    config, context = config if isinstance(config, Config) else Config(config), context_of(context)

    def work(cancel: Any, report: Progress) -> Any:
        def report_progress(_: Any, done: int, total: int, what: bytes) -> None:
            report(done, total, what.decode(errors="replace"))

        callback = _structs.ProgressCallback(report_progress) if progress else _structs.ProgressCallback()
        run_options = _structs.RunOptions(
            progress=callback, cancel=ctypes.addressof(cancel), shard_index=shard[0], shard_count=shard[1], **options
        )
        return json_of(function, context._handle, config._handle, ctypes.byref(run_options))

    return interruptible(work, progress)


def prewarm(
    config: Source,
    *,
    arch: Path | None = None,
    op: str | None = None,
    jobs: int = 0,
    check: bool = False,
    shard: Shard = (0, 0),
    context: Context | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compiles what a config needs into the cache. Needs no GPU where ``arch`` is named.

    Args:
        config: a :class:`Config`, a path, a dict, or a list of instances.
        arch: ``"sm_90a"``, a product such as ``"H200"``, or a DeviceSpec file. None: the GPU that is there.
        op: the name of one instance. None: all.
        jobs: compiles at once. 0: ``HSTUJIT_COMPILE_JOBS``.
        check: compiles and writes nothing; a kernel that is missing is an error.
        shard: part (index, count) of the keys, of a job whose processes divide them. (0, 0): all.
        progress: called with how many are done, of how many, and the current one. What it raises is raised.

    KeyboardInterrupt ends the work as Ctrl-C ends the command line tool. What was compiled stays in the cache. A
    compile of this process that is under way ends by itself, on a thread of its own.
    """
    options = {"arch": arch, "op_name": op, "jobs": jobs, "check": bool(check)}
    return _call_until_interrupted(library.hstujit_prewarm, config, context, progress, shard, **options)


def tune(
    config: Source,
    *,
    op: str | None = None,
    budget_s: float = 0,
    device: int = 0,
    jobs: int = 0,
    shard: Shard = (0, 0),
    context: Context | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Times candidates on a GPU, checks each against the reference, and keeps the winners.

    ``budget_s`` is of the whole call, in seconds; 0: the config's. The others are those of :func:`prewarm`.
    """
    options = {"op_name": op, "budget_s": budget_s, "device": device, "jobs": jobs}
    return _call_until_interrupted(library.hstujit_tune, config, context, progress, shard, **options)


def explain(
    config: Source, *, arch: Path | None = None, op: str | None = None, context: Context | None = None
) -> dict[str, Any]:
    """Which kernel each length gets, and why. Compiles nothing."""
    return _call(library.hstujit_explain, config, context, arch=arch, op_name=op)


def check_config(config: Source, *, arch: Path | None = None, context: Context | None = None) -> dict[str, Any]:
    """What a config asks for, key by key. Compiles nothing."""
    return _call(library.hstujit_check, config, context, arch=arch)


def run(
    config: Source,
    *,
    op: str | None = None,
    backend: str = "cuda",
    check: bool = False,
    device: int = 0,
    repeats: int = 0,
    seed: int = 0,
    max_rows: int = 0,
    context: Context | None = None,
) -> dict[str, Any]:
    """Runs instances on generated inputs, on a GPU or with ``backend="host"``.

    ``check`` compares with a float64 reference. ``repeats`` launches on the same input are compared with one another.
    ``max_rows`` bounds the rows of a batch; 0: all of them.
    """
    numbers = {"device": device, "repeats": repeats, "seed": seed, "max_rows": max_rows, "check": bool(check)}
    place = _structs.number_of("backend", backend, _structs.BACKENDS)
    return _call(library.hstujit_run, config, context, op_name=op, backend=place, **numbers)


def bench(
    config: Source, *, op: str | None = None, device: int = 0, repeats: int = 0, context: Context | None = None
) -> dict[str, Any]:
    """Times instances on a GPU, ``repeats`` launches each; 0: 50."""
    return _call(library.hstujit_bench, config, context, op_name=op, device=device, repeats=repeats)


def emit(
    config: Source, directory: Path, *, arch: Path | None = None, op: str | None = None, context: Context | None = None
) -> dict[str, Any]:
    """Writes the generated CUDA source of instances to a directory."""
    return _call(library.hstujit_emit, config, context, arch=arch, op_name=op, directory=directory)


def freeze(
    config: Source, *, arch: Path | None = None, op: str | None = None, context: Context | None = None
) -> dict[str, Any]:
    """Which kernel each key gets now, or those of one instance: the content of a file for ``HSTUJIT_FROZEN``."""
    return _call(library.hstujit_freeze, config, context, arch=arch, op_name=op)


__all__ = ["bench", "check_config", "emit", "explain", "freeze", "prewarm", "run", "tune"]
