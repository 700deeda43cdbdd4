"""What autocast does to the inputs of an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._interface import Interface
from ._schema import function_of, keywords, positional


def autocast_of(described: Interface, op: Any, key: str) -> Callable[..., Any]:
    """Operators with matrix products compute in the data type of autocast, others in the widest one of their inputs.

    What has products has the precision of those in fp32 among its parameters.
    """
    names = dict(described.dtypes).get("dtype", ())
    weights = dict(described.dtypes).get("weight_dtype", ())
    lowers = any(parameter.name == "precision" for parameter in described.parameters)
    device = "cuda" if key == "AutocastCUDA" else "cpu"
    excluded = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    indices = {argument.name: index for index, argument in enumerate(described.inputs)}
    order = [name for name, _, _ in positional(described)]

    def body(inputs: Any, parameters: Any, rows: Any) -> Any:
        values = dict(zip(indices, inputs))
        floats = [values[name] for name in names if values[name] is not None and values[name].is_floating_point()]
        if floats:
            target = torch.get_autocast_dtype(device) if lowers else _widest(floats)
            for name in names:
                values[name] = _cast(values[name], target)
            for name in weights:
                if values[name] is not None and values[name].dtype != torch.float32:
                    values[name] = _cast(values[name], target)
        named = dict(zip((name for name, _, _ in keywords(described)), (*parameters, *rows)))
        with torch._C._ExcludeDispatchKeyGuard(excluded):
            return op(*(values[name] for name in order), **named)

    return function_of(described, body)


def _cast(tensor: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    return tensor if tensor is None or not tensor.is_floating_point() else tensor.to(dtype)


def _widest(tensors: list[torch.Tensor]) -> torch.dtype:
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype
