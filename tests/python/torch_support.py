"""PyTorch, or None where it is not installed. With HSTUJIT_TEST_TORCH=1, as in CI, it must be there."""

import os
import pathlib
import sys
import tempfile

try:
    import torch
except ModuleNotFoundError:
    if os.environ.get("HSTUJIT_TEST_TORCH") == "1":
        raise
    torch = None


def import_scratch_packages(test, write, packages):
    """During the test, packages of these names are imported from what ``write`` puts into a folder."""
    scratch = tempfile.TemporaryDirectory()
    test.addCleanup(scratch.cleanup)
    write(pathlib.Path(scratch.name))
    sys.path.insert(0, scratch.name)
    test.addCleanup(sys.path.remove, scratch.name)

    def forget():
        for name in [name for name in sys.modules if name.split(".")[0] in packages]:
            del sys.modules[name]

    test.addCleanup(forget)
