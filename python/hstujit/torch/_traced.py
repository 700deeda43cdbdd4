"""Calls of an operator with tensors that have no data: fake implementations, and what backward needs of forward."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import torch

from .._calls import Call, Given, call_of, strides_of
from .._interface import Interface
from .._structs import DLTensor, Value
from ..context import default_context
from ..errors import InvalidArgumentError
from ._dtypes import DTYPES, dlpack_type
from ._shapes import check_shapes


class Function:
    """One direction of an operator."""

    def __init__(self, interface: Interface) -> None:
        self.interface = interface
        self.positions = {argument.name: index for index, argument in enumerate(interface.inputs)}
        self.parameter_names = tuple(parameter.name for parameter in interface.parameters)
        self.rows = tuple(keyword for _, keyword in interface.rows)
        self.is_tensor = tuple(argument.is_tensor for argument in interface.inputs)
        required = (argument.is_tensor and argument.name not in interface.optional for argument in interface.inputs)
        self.required = tuple(name for name, is_required in zip(self.positions, required) if is_required)
        self.first = self.positions[self.required[0]]

    def call(self, inputs: Iterable[Any], parameters: tuple[Any, ...], rows: Iterable[str] = ()) -> Call:
        """The instance of a call, whose sizes may be symbols."""
        values = {name: value for name, value in zip(self.positions, inputs) if value is not None}
        for name in self.required:
            if name not in values:
                raise InvalidArgumentError(f"{name} is None; it must be a tensor")
        fixed: dict[str, set[int]] = {}  # sizes that a kernel is made for
        for name, axis in self.interface.decisive_axes:
            fixed.setdefault(name, set()).add(axis)
        tensors = {
            name: _described(value, fixed.get(name, set())) for name, value in values.items() if is_tensor(value)
        }
        numbers = {name: value for name, value in values.items() if name not in tensors}
        keywords = dict(zip(self.parameter_names, parameters))
        return call_of(
            default_context(), self.interface, "cuda", Given(tensors, numbers, keywords, dict.fromkeys(rows, 0))
        )

    def fake(self, inputs: tuple[Any, ...], parameters: tuple[Any, ...], rows: tuple[Any, ...]) -> Any:
        """New outputs of a call, which the library checks as far as sizes are known."""
        self.check_devices(inputs)
        given = {name: value for name, value in zip(self.rows, rows) if value is not None}
        call = self.call(inputs, parameters, given)
        values = dict(zip(self.positions, inputs))
        check_shapes(call.signature, values)
        first = inputs[self.first]
        made = [
            first.new_empty(shape, dtype=DTYPES[output.dtype or ""]) if elements == 1
            else first.new_empty_strided(shape, strides_of(shape, elements), dtype=DTYPES[output.dtype or ""])
            for shape, output, elements in zip(
                self.sizes(call, values, given), call.signature.outputs, call.row_elements
            )
        ]  # fmt: skip
        return self.all_outputs(call, made, first)

    def sizes(self, call: Call, values: dict[str, Any], given: dict[str, Any]) -> list[tuple[Any, ...]]:
        tensors = {a.name: values[a.name] for a in call.signature.inputs if a.is_tensor}
        numbers = {a.name: values[a.name] for a in call.signature.inputs if not a.is_tensor}
        known = [size for tensor in tensors.values() for size in tensor.shape] + [*numbers.values(), *given.values()]
        if all(isinstance(value, (int, float)) for value in known) and not any("last" in s for s in call.symbols):
            launch = (Value * len(call.signature))()
            described = {name: _described(tensor, set(range(tensor.dim()))) for name, tensor in tensors.items()}
            for value, argument in zip(launch, call.signature):
                if argument.name in described:
                    value.tensor = ctypes.addressof(described[argument.name])
                elif argument.kind == "int" and not argument.is_output:
                    value.integer = numbers[argument.name]
            return call.output_sizes(launch, (given[symbol["keyword"]] for symbol in call.given_symbols))
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        return call.traced_sizes(shapes, numbers, given, lambda _: torch.library.get_ctx().new_dynamic_size())

    def check_devices(self, inputs: tuple[Any, ...]) -> None:
        """Of tensors whose addresses no kernel sees; others the library checks."""
        first = inputs[self.first]
        for name, value, is_a_tensor in zip(self.positions, inputs, self.is_tensor):
            if is_a_tensor and value is not None and first is not None and value.device != first.device:
                raise InvalidArgumentError(
                    f"Expected all tensors to be on the same device, but {self.interface.inputs[self.first].name} is "
                    f"on {first.device}, and {name} is on {value.device}"
                )

    def all_outputs(self, call: Call, outputs: list[torch.Tensor], first: torch.Tensor) -> Any:
        """One for each output of the schema: without elements where this instance has none."""
        made = dict(zip((argument.name for argument in call.signature.outputs), outputs))
        every = tuple(
            made[a.name] if a.name in made else first.new_empty(0, dtype=outputs[0].dtype)
            for a in self.interface.outputs
        )
        return every if len(every) > 1 else every[0]


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _described(tensor: torch.Tensor, fixed: set[int]) -> DLTensor:
    """Data type and shape, in which a size that is a symbol is -1."""
    sizes = [_known(size, axis in fixed) for axis, size in enumerate(tensor.shape)]
    described = DLTensor(ndim=len(sizes), dtype=dlpack_type(tensor.dtype))
    described.shape = (ctypes.c_int64 * len(sizes))(*sizes)
    return described


def _known(size: Any, is_fixed: bool) -> int:
    """While PyTorch traces, a size is a symbol: a kernel is made for one size of a parameter."""
    if isinstance(size, int) or is_fixed:
        return int(size)
    from torch.fx.experimental import symbolic_shapes

    decide = getattr(symbolic_shapes, "guard_or_false", None) or symbolic_shapes.guard_size_oblivious
    return 1 if decide(size == 1) else -1


__all__ = ["Function"]
