"""Says why an operator serves no call with a function's arguments, as far as their types and sizes say.

It follows from the description of the operator. ``torch.compile`` traces it, where no error of an operator could be
caught: limits are plain tuples, and what is said names no value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch

from .._interface import Interface, interface
from .._words import either
from ._arguments import INTEGERS, REALS, is_cast, is_integral
from ._calling import Calling
from ._schema import DTYPES

Given = Mapping[str, Any]

# Whatever integers they are, functions make those of them that the operator takes.
_CONVERTED = ("num_targets", "num_contexts", "attn_func", "timestamps", "query_time")


class Limits:
    """Limits of the operator that a function calls.

    Attributes:
        types: arguments that have one data type, which it may be, and that as words.
        integers: arguments that are integers, of any type.
        weights: arguments that become the data type of the rows, unless they are fp32.
        bounds: argument; the axis counted from behind whose size counts, None of a number; least, most; and what
            is said of another one.
    """

    def __init__(self, calling: Calling, arguments: Collection[str], moves: bool) -> None:
        """
        Args:
            arguments: those that the function has.
            moves: it takes rows of integers, too, each byte of which is a column.
        """
        described = interface(calling.operator, "forward")
        names = {a.name for a in described.inputs} | {p.name for p in described.parameters}
        own = {name: argument for name in names if (argument := calling.names.get(name, name)) in arguments}
        self.moves = moves
        self.integers = tuple(own[name] for name in _CONVERTED if name in own)
        self.types: list[Any] = []
        self.weights: tuple[str, ...] = ()
        for parameter, of_type in described.dtypes.items():
            typed = tuple(own[name] for name in of_type if name in own and name not in _CONVERTED)
            if parameter == "weight_dtype":
                self.weights = typed
            else:
                allowed: list[str] = described.allowed[parameter]["enum"]
                self.types.append((typed, tuple(DTYPES[name] for name in allowed), either(allowed)))
        self.bounds = tuple(_bounds(described, own))

    def refuse(self, given: Given) -> str:
        """Why no call with these arguments is served, or ""."""
        return self.refuse_types(given) or self.refuse_numbers(given)

    def refuse_types(self, given: Given) -> str:
        for names, allowed, words in self.types:
            tensors = [(name, given[name]) for name in names if isinstance(given.get(name), torch.Tensor)]
            if not tensors:
                continue
            first, like = tensors[0]
            # Autocast gives all of them one type of its own.
            casts = like.is_floating_point() and is_cast(like)
            for name, tensor in tensors:
                is_known = tensor.dtype in (REALS if casts else allowed)
                if not is_known and not (self.moves and is_integral(tensor.dtype)):
                    return f"{name} of another type than {words}"
                if not casts and tensor.dtype != like.dtype:
                    return f"{first} and {name} of different types"
        for integer in self.integers:
            if isinstance(given.get(integer), torch.Tensor) and given[integer].dtype not in INTEGERS:
                return f"{integer} of no integers"
        return self.refuse_weights(given)

    def refuse_weights(self, given: Given) -> str:
        if not self.weights:
            return ""
        weights = [(name, given[name]) for name in self.weights if isinstance(given.get(name), torch.Tensor)]
        names = self.types[0][0]
        rows = next((given[name] for name in names if isinstance(given.get(name), torch.Tensor)), None)
        for name, weight in weights:
            if weight.dtype not in REALS:
                return f"{name} of another type than bf16, fp16, fp32 or fp64"
            is_mixed = (weight.dtype == torch.float32) != (weights[0][1].dtype == torch.float32)
            if is_mixed and rows is not None and rows.dtype != torch.float32:
                return "weights of different types"
        return ""

    def refuse_numbers(self, given: Given) -> str:
        for name, axis, least, most, words in self.bounds:
            number = given.get(name) if axis is None else self.size(given.get(name), axis)
            if isinstance(number, int) and not least <= number <= most:
                return words
        return ""

    def size(self, value: Any, axis: int) -> Any:
        if not isinstance(value, torch.Tensor) or value.dim() < -axis:
            return None
        size = value.shape[axis]
        return size * value.dtype.itemsize if self.moves and is_integral(value.dtype) else size


def _bounds(described: Interface, own: Mapping[str, str]) -> Iterator[Any]:
    ranks = {argument.name: len(argument.shape) for argument in described.inputs if argument.is_tensor}
    for parameter in (*described.sizes, *(p.name for p in described.parameters)):
        schema = described.allowed[parameter]
        if "minimum" not in schema:
            continue
        least, most = schema["minimum"], schema["maximum"]
        wanted = f"not from {least} to {most}"
        for axis in described.sizes.get(parameter, ()):
            if (name := own.get(axis["argument"])) and "when" not in axis:
                place = axis["axis"] - ranks[axis["argument"]]
                yield name, place, least, most, f"{parameter} of {name} {wanted}"
        if parameter in own:
            yield own[parameter], None, least, most, f"{own[parameter]} {wanted}"
