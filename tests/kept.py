"""Where tests keep results of long computations between runs, as ``kept_path`` of ``tests/paths.h`` has it."""

import os
import pathlib


def kept_folder(name: str) -> str | None:
    """The folder of that name; None where HSTUJIT_TEST_CACHE is empty, which keeps nothing."""
    folder = os.environ.get("HSTUJIT_TEST_CACHE")
    if folder is None:
        cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        folder = str(pathlib.Path(cache) / "hstujit-tests")
    return str(pathlib.Path(folder) / name) if folder else None
