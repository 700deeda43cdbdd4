"""Calls of an operator with tensors that have no data: fake implementations, and what backward needs of forward."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import torch

from .._calls import Call, Given, call_of, strides_of
from .._interface import Interface
from .._structs import UNKNOWN_INTEGER, DLTensor, Value
from ..context import default_context
from ..errors import InvalidArgumentError
from ._schema import DECLARED, DTYPES, dlpack_type


class Function:
    """One direction of an operator. ``values`` of its methods are all arguments of the schema by name."""

    def __init__(self, interface: Interface) -> None:
        self.interface = interface
        self.tensors = [argument.name for argument in interface.inputs if argument.is_tensor]
        self.lists_outputs = bool(interface.declares) and interface.direction == "backward"
        self.required = [name for name in self.tensors if name not in interface.optional]

    def call(self, values: Mapping[str, Any]) -> Call:
        """The instance of a call, whose sizes may be symbols."""
        for name in self.required:
            if values[name] is None:
                raise InvalidArgumentError(f"{name} is None; it must be a tensor")
        fixed: dict[str, set[int]] = {}  # sizes that a kernel is made for
        for name, axis in self.interface.decisive_axes:
            fixed.setdefault(name, set()).add(axis)
        given = {a.name: values[a.name] for a in self.interface.inputs if values[a.name] is not None}
        tensors = {name: _described(given[name], fixed.get(name, set())) for name in self.tensors if name in given}
        numbers = {name: value for name, value in given.items() if name not in tensors}
        for place, tensor in enumerate(values.get(DECLARED) or ()):
            tensors[f"{self.interface.declares}[{place}]"] = _described(tensor, set())
        keywords = {parameter.name: values[parameter.name] for parameter in self.interface.parameters}
        rows = {keyword: 0 for _, keyword in self.interface.rows if values[keyword] is not None}
        return call_of(default_context(), self.interface, "cuda", Given(tensors, numbers, keywords, rows))

    def fake(self, values: Mapping[str, Any]) -> Any:
        """New outputs of a call, which the library checks as far as sizes are known."""
        self.check_devices(values)
        call = self.call(values)
        first = values[self.required[0]]
        inputs = call.signature.inputs
        known = {argument.name for argument in (*self.interface.inputs, *self.interface.outputs)}
        declared = [argument.name for argument in inputs if argument.name not in known]
        values = {**values, **dict(zip(declared, values.get(DECLARED) or ()))}
        described = {a.name: _described(values[a.name], set()) for a in inputs if a.is_tensor}
        launch = (Value * len(call.signature))()
        for value, argument in zip(launch, call.signature):
            if argument.name in described:
                value.tensor = ctypes.addressof(described[argument.name])
            elif argument.kind == "int":
                number = values[argument.name]
                value.integer = number if isinstance(number, int) else UNKNOWN_INTEGER
        call.check(launch)
        shapes = call.traced_sizes(
            {name: values[name].shape for name in described},
            {a.name: values[a.name] for a in inputs if not a.is_tensor},
            values,
            lambda _: torch.library.get_ctx().new_dynamic_size(),
        )
        made = {
            output.name: first.new_empty(shape, dtype=DTYPES[output.dtype or ""]) if elements == 1
            else first.new_empty_strided(shape, strides_of(shape, elements), dtype=DTYPES[output.dtype or ""])
            for shape, output, elements in zip(shapes, call.signature.outputs, call.row_elements)
        }  # fmt: skip
        # An output that this instance does not have is without elements.
        dtype = next(iter(made.values())).dtype
        every = tuple(made.get(a.name, first.new_empty(0, dtype=dtype)) for a in self.interface.outputs)
        if self.lists_outputs:
            return [*every, *(tensor for name, tensor in made.items() if name not in known)]
        return every if len(every) > 1 else every[0]

    def check_devices(self, values: Mapping[str, Any]) -> None:
        """Checks tensors whose addresses no kernel sees; others the library checks."""
        first = self.required[0]
        declared = enumerate(values.get(DECLARED) or ())
        given = {name: values[name] for name in self.tensors} | {f"{DECLARED}[{at}]": tensor for at, tensor in declared}
        like = values[first]
        for name, value in given.items():
            if value is not None and like is not None and value.device != like.device:
                raise InvalidArgumentError(
                    f"Expected all tensors to be on the same device, but {first} is on {like.device}, and {name} is on "
                    f"{value.device}"
                )


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

    return 1 if symbolic_shapes.guard_or_false(size == 1) else -1
