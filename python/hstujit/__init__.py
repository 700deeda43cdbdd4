"""hstu-jit: just-in-time compiled operators for generative recommenders (HSTU).

Every operator of docs/ops.md is a function here, for arrays that speak DLPack: ``hstujit.attention(q, k, v, ...)``.
Arrays in host memory are computed by the host backend, arrays of a GPU by kernels that are compiled for them.
``hstujit.torch`` has the same for PyTorch, with autograd and ``torch.compile``.
"""

from __future__ import annotations

from typing import Any

from . import errors, operators
from ._library import library as _loaded
from ._words import did_you_mean, shown
from .cache import Cache
from .commands import bench, check_config, emit, explain, freeze, prewarm, run, tune
from .config import Config, config_schema
from .context import Context, default_context, set_default_context
from .errors import Error
from .op import Op

__version__: str = _loaded.hstujit_version().decode()

__all__ = [
    "Cache", "Config", "Context", "Error", "Op", "bench", "check_config", "config_schema", "default_context", "emit",
    "errors", "explain", "freeze", "operators", "prewarm", "run", "set_default_context", "tune",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in operators.names():
        nearest = "" if name.startswith("_") else did_you_mean(name, [*__all__, *operators.names()])
        raise AttributeError(f"module {shown(__name__)} has no attribute {shown(name)}{nearest}")
    return getattr(operators, name)


def __dir__() -> list[str]:
    modules = (name for name, value in globals().items() if isinstance(value, type(operators)) and name[0] != "_")
    special = (name for name in globals() if name.startswith("__"))
    return sorted({*__all__, *operators.names(), *modules, *special})
