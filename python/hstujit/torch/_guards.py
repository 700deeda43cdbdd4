"""What else than an operator's kernels may have a say in its calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ._schema import NAMESPACE

Guard = Callable[[], Any]


def profilers() -> list[Guard]:
    """Each is true where somebody lists what the dispatcher calls."""
    return [torch._C._autograd._profiler_enabled]


# The kernels that torch.library registered, as "hstujit/silu/CPU". It is a member that PyTorch does not document.
registered_kernels: set[str] = getattr(torch.library, "_impls", set())


def overrides_of(name: str) -> list[str]:
    """The members of registered_kernels that take the place of an operator's kernels, or come before them."""
    return [f"{NAMESPACE}/{name}/{key}" for key in ("CPU", "CUDA", "AutogradCPU", "AutogradCUDA")]


def guards() -> list[Guard]:
    """Each is true where the dispatcher decides, whatever the arguments are."""
    return [
        torch._C._len_torch_dispatch_stack,
        torch._C._len_torch_function_stack,
        torch._C._are_functorch_transforms_active,
        torch._C._is_tracing,
        # Of what is traced before the dispatcher, by make_fx(pre_dispatch=True) and torch.export.
        functools.partial(torch._C._dispatch_tls_is_dispatch_key_included, torch._C.DispatchKey.PythonDispatcher),
    ]
