"""Autocast of the inputs of an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._interface import Interface
from ._schema import by_name, operator_of


def autocast_of(described: Interface, key: str) -> Callable[..., Any]:
    """Operators with matrix products compute in the data type of autocast, others in the widest one of their inputs.

    What has products has the precision of those in fp32 among its parameters. Weights of norms may stay fp32.
    """
    names, weights = described.dtypes.get("dtype", ()), described.dtypes.get("weight_dtype", ())
    lowers = any(parameter.name == "precision" for parameter in described.parameters)
    device = "cuda" if key == "AutocastCUDA" else "cpu"
    excluded = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    op = operator_of(described.name)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        values = by_name(described.name, args, kwargs)
        floats = [name for name in names if values[name] is not None and values[name].is_floating_point()]
        if floats:
            target = torch.get_autocast_dtype(device) if lowers else _widest([values[name] for name in floats])
            for name in (*floats, *weights):
                if values[name] is not None and (name in floats or values[name].dtype != torch.float32):
                    values[name] = values[name].to(target) if values[name].is_floating_point() else values[name]
        with torch._C._ExcludeDispatchKeyGuard(excluded):
            return op(**values)

    return kernel


def _widest(tensors: list[torch.Tensor]) -> torch.dtype:
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype
