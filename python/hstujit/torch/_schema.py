"""Operators by the schemas that libhstujit_torch.so has registered, and data types as the library names them."""

from __future__ import annotations

import functools
import re
from typing import Any

import torch

from .._structs import DLDataType

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
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5}
_WHOLE = {
    torch.bool: (6, 8),
    torch.float8_e4m3fn: (10, 8),
    torch.float8_e4m3fnuz: (11, 8),
    torch.float8_e5m2: (12, 8),
    torch.float8_e5m2fnuz: (13, 8),
}


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


def dlpack_type(dtype: torch.dtype) -> DLDataType:
    """A handle, which the library refuses, for a type that DLPack does not have."""
    if dtype in _WHOLE:
        return DLDataType(*_WHOLE[dtype], 1)
    found = re.fullmatch(r"([a-z]+)(\d+)", str(dtype).removeprefix("torch."))
    return DLDataType(_CODES[found[1]], int(found[2]), 1) if found and found[1] in _CODES else DLDataType(3, 8, 1)
