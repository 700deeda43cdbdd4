"""Data types of PyTorch, as the library names them and as DLPack has them."""

from __future__ import annotations

import re

import torch

from .._structs import DLDataType

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


def dtype_name(dtype: torch.dtype) -> str:
    return NAMES.get(dtype, str(dtype).removeprefix("torch."))


def dlpack_type(dtype: torch.dtype) -> DLDataType:
    """A handle, which the library refuses, for a type that DLPack does not have."""
    if dtype in _WHOLE:
        return DLDataType(*_WHOLE[dtype], 1)
    found = re.fullmatch(r"([a-z]+)(\d+)", str(dtype).removeprefix("torch."))
    return DLDataType(_CODES[found[1]], int(found[2]), 1) if found and found[1] in _CODES else DLDataType(3, 8, 1)
