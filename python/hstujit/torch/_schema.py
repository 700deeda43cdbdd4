"""Operators by the schemas that libhstujit_torch.so has registered, and data types as the library names them."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .._arrays import Tensor
from .._structs import DLDataType
from ..errors import InvalidArgumentError

NAMESPACE = "hstujit"
OPERATORS: Any = getattr(torch.ops, NAMESPACE)
DECLARED = "operand_tensors"  # what the text ``operands`` declares, in its order

NAMES = {
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.int32: "int32",
    torch.int64: "int64",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}


def operator_of(name: str) -> Any:
    return getattr(OPERATORS, name).default


@functools.cache
def positional(name: str) -> tuple[str, ...]:
    """Names of the arguments of an operator that need no keyword, in order."""
    return tuple(argument.name for argument in operator_of(name)._schema.arguments if not argument.kwarg_only)


@functools.cache
def defaults(name: str) -> dict[str, Any]:
    """Every argument of an operator, with its default, or None where it has none."""
    return {argument.name: argument.default_value for argument in operator_of(name)._schema.arguments}


def by_name(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Every argument of a call of an operator."""
    return {**defaults(name), **dict(zip(positional(name), args)), **kwargs}


def dtype_name(dtype: torch.dtype) -> str:
    return NAMES.get(dtype, str(dtype).removeprefix("torch."))


@functools.cache
def dlpack_type(dtype: torch.dtype) -> DLDataType:
    """A handle, which the library refuses, for a type that DLPack does not have."""
    with _disable_current_modes():  # whose tensors have no memory to exchange
        empty = torch.empty(0, dtype=dtype)
    try:
        exchanged = Tensor("empty", empty)
    except InvalidArgumentError:
        return DLDataType(3, 8, 1)
    found = exchanged.dl_tensor.dtype  # in memory that goes with the tensor
    return DLDataType(found.code, found.bits, found.lanes)
