"""What a launch needs beside addresses, sizes and strides.

It follows from data types, a few sizes and the parameters of a call, is found out once, and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .. import _instances
from .._interface import Interface
from ..context import Context
from ..errors import InvalidArgumentError
from ..signature import Argument, Signature

NAMES = {
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.int32: "int32",
    torch.int64: "int64",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}

MOST_PLANS = 512  # that are kept of one operator; each keeps the ops that it launches


def dtype_name(dtype: torch.dtype) -> str:
    return NAMES.get(dtype, str(dtype).removeprefix("torch."))


# Where the value of a symbol is read: which input, which axis (None of a number), its factor and bias.
Source = tuple[int, "int | None", int, int]


class Plan:
    """The instance of a call.

    Args:
        positions: of the inputs of the interface.
        described: shape and data type of each tensor that is given.
        given: names of all inputs that are.
        chosen: parameters.
    """

    def __init__(
        self,
        interface: Interface,
        positions: dict[str, int],
        context: Context,
        described: dict[str, tuple[tuple[int, ...], str]],
        given: set[str],
        chosen: dict[str, Any],
    ) -> None:
        self.interface, self.context = interface, context
        self.parameters = _instances.parameters_of(interface, described, given, chosen)
        op = _instances.op_of(context, interface, "cuda", self.parameters)
        self.signature = op.signature
        _instances.check_arguments(interface, self.signature, given)
        for argument in self.signature.inputs:
            if argument.is_tensor:
                _check_tensor(self.signature, argument, *described[argument.name])
        self.row_elements = tuple(_instances.row_elements(interface, argument) for argument in self.signature.outputs)
        self.dtypes = tuple(DTYPES[argument.dtype or ""] for argument in self.signature.outputs)
        self.sources = dict(self.find_sources(positions))
        index = self.signature.max_rows
        self.max_rows = None if index is None else positions[self.signature[index].name]

    def find_sources(self, positions: dict[str, int]) -> Iterator[tuple[str, Source]]:
        for argument in self.signature.inputs:
            if not argument.is_tensor:
                yield argument.name, (positions[argument.name], None, 1, 0)
        for argument in reversed(self.signature.inputs):  # the first one counts
            for axis, size in enumerate(argument.shape):
                if len(size.symbols) == 1 and self.signature.find(size.symbols[0]) is None:
                    yield size.symbols[0], (positions[argument.name], axis, size.factor, size.bias)

    def output_shapes(
        self, value_of: Callable[[Source], Any], rows: dict[str, Any], read_rows: Callable[[str], Any]
    ) -> list[tuple[Any, ...]]:
        """``rows`` are symbols that the caller gave, ``read_rows`` gives the last element of a tensor of offsets."""
        values = {symbol: value_of(source) for symbol, source in self.sources.items()}
        return _instances.output_shapes(self.interface, self.signature, {**values, **rows}, read_rows)


def _check_tensor(signature: Signature, argument: Argument, shape: tuple[int, ...], dtype: str) -> None:
    if dtype != argument.dtype:
        raise InvalidArgumentError(f"{argument.name} has dtype {dtype}; it must be {signature.dtype_text(argument)}")
    if len(shape) != len(argument.shape):
        wanted = argument.shape_text
        raise InvalidArgumentError(f"{argument.name} has rank {len(shape)}, shape {shape}; it must be {wanted}")
