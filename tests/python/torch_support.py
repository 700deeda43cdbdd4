"""PyTorch, or None where it is not installed. With HSTUJIT_TEST_TORCH=1, as in CI, it must be there."""

import os

try:
    import torch
except ModuleNotFoundError:
    if os.environ.get("HSTUJIT_TEST_TORCH") == "1":
        raise
    torch = None
