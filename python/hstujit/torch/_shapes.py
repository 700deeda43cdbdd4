"""Sizes of tensors without data, while PyTorch traces: a launch, in which the library checks them, comes later if ever.

The sentences are the library's (runtime/launch/arguments_explain.cpp).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from .._words import shown
from ..errors import InvalidArgumentError
from ..signature import Argument, Dimension, Signature

_MOST_SEQUENCES = 2**28  # kMaxSeqLen of compiler/spec/limits.h
_Axis = tuple[Argument, int, Dimension, int]  # of a tensor, with its size


def check_shapes(signature: Signature, inputs: Mapping[str, Any]) -> None:
    """Of inputs that have the ranks of the signature. Sizes and numbers that are symbols of PyTorch may be any."""
    _check_numbers(signature, inputs)
    symbols: dict[str, tuple[int, str]] = {}  # values, and the tensor that each is from
    for axis in _axes(signature, inputs):
        if _number_in(signature, axis[2]) is None:
            _check_axis(axis, symbols)
    sequences, origin = symbols.get("B", (0, ""))
    if sequences > _MOST_SEQUENCES:
        raise InvalidArgumentError(f"{origin} is of {sequences} sequences; allowed: at most {_MOST_SEQUENCES}")
    for axis in _axes(signature, inputs):
        number = _number_in(signature, axis[2])
        if number is not None and isinstance(inputs[number], int):
            _check_axis_of_number(axis, number, inputs[number], symbols)


def _check_numbers(signature: Signature, inputs: Mapping[str, Any]) -> None:
    longest = None if signature.max_rows is None else signature[signature.max_rows].name
    for argument in signature.inputs:
        value = inputs[argument.name]
        if not isinstance(value, int) or argument.max is None:
            continue
        most = int(argument.max)
        if argument.name == longest and not 1 <= value <= most:
            raise InvalidArgumentError(f"max_seq_len is {shown(value)}; it must be between 1 and {most}")
        if value > most:
            raise InvalidArgumentError(f"{argument.name} is {shown(value)}; it must be at most {most}")


def _axes(signature: Signature, inputs: Mapping[str, Any]) -> Iterator[_Axis]:
    for argument in signature.inputs:
        for axis, dimension in enumerate(argument.shape):
            size = inputs[argument.name].shape[axis]
            if not isinstance(size, torch.SymInt):
                yield argument, axis, dimension, size


def _number_in(signature: Signature, dimension: Dimension) -> str | None:
    """The number that the size is a multiple of."""
    return next((symbol for symbol in dimension.symbols if signature.find(symbol) is not None), None)


def _check_axis(axis: _Axis, symbols: dict[str, tuple[int, str]]) -> None:
    argument, _, dimension, size = axis
    symbol = "" if dimension.is_constant else dimension.symbols[0]
    if symbol in symbols:
        value, origin = symbols[symbol]
        wanted = dimension.factor * value + dimension.bias
        if size != wanted:
            _refuse(axis, f"{dimension.text} = {wanted}, as in {origin}")
        return
    value, rest = divmod(size - dimension.bias, dimension.factor or 1)
    too_large = dimension.max_size is not None and size > dimension.max_size
    if value < 0 or rest or (dimension.is_constant and value) or too_large:
        least = f"at least {dimension.bias}, " if symbol and dimension.bias > 0 else ""
        most = "" if dimension.max_size is None else f"at most {dimension.max_size}, "
        _refuse(axis, f"{dimension.text}, {least}{most}shape {argument.shape_text}")
    if symbol:
        symbols[symbol] = value, argument.name


def _check_axis_of_number(axis: _Axis, number: str, value: int, symbols: dict[str, tuple[int, str]]) -> None:
    _, _, dimension, size = axis
    others = [symbol for symbol in dimension.symbols if symbol != number]
    if any(other not in symbols for other in others):
        return
    wanted = dimension.size({number: value, **{other: symbols[other][0] for other in others}})
    if size == wanted:
        return
    if not others:
        _refuse(axis, f"{number}, which is {value}")
    sequences, origin = symbols[others[0]]
    of = f"with {others[0]} = {sequences} (from {origin}) and {number} = {value}"
    _refuse(axis, f"{dimension.text} = {wanted}, {of}")


def _refuse(axis: _Axis, wanted: str) -> None:
    argument, index, _, size = axis
    raise InvalidArgumentError(f"{argument.name}.shape[{index}] is {size}; it must be {wanted}")
