"""Launches an operator on torch tensors.

What a launch needs beside addresses, sizes and strides follows from data types, a few sizes and the parameters: it is
found out once and kept as a plan. A plan fills one block of memory with the values of a launch, which the C library
reads during the call alone.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import torch

from .. import _instances
from .._interface import Interface
from .._library import check, library
from .._structs import DLTensor
from ..context import default_context
from ..errors import InvalidArgumentError, NotPreparedError
from ..op import Op
from ..signature import Argument, Dimension

NAMES = {
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.int32: "int32",
    torch.int64: "int64",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}
# Code and bits of DLPack, and one lane.
_DLPACK_TYPES = {"bf16": (4, 16), "fp16": (2, 16), "fp32": (2, 32), "int32": (0, 32), "int64": (0, 64)}
_CPU, _CUDA = 1, 2
_WORDS = ctypes.sizeof(DLTensor) // 8  # data; device; rank and type; shape; strides; offset

_current_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 0)
_current_device: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", lambda: 0)
_seen = threading.local()


def dtype_name(tensor: torch.Tensor) -> str:
    return NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))


class Block:
    """Memory for the values of one launch."""

    __slots__ = ("memory", "integers", "reals", "address")

    def __init__(self, plan: AlignedPlan) -> None:
        self.memory = (ctypes.c_int64 * plan.words)()
        self.address = ctypes.addressof(self.memory)
        view = memoryview(self.memory).cast("B")
        self.integers, self.reals = view.cast("q"), view.cast("d")
        for position, (descriptor, sizes, rank, type_) in plan.tensors.items():
            self.integers[position] = self.address + 8 * descriptor
            code, bits = type_
            self.integers[descriptor + 2] = rank | (code | bits << 8 | 1 << 16) << 32
            self.integers[descriptor + 3] = self.address + 8 * sizes
            self.integers[descriptor + 4] = self.address + 8 * (sizes + rank)


class AlignedPlan:
    """The launches of one op."""

    def __init__(self, op: Op, positions: dict[str, int]) -> None:
        self.op, self.handle = op, op._handle
        self.count = len(op.signature)
        self.words = self.count
        # By position in the signature: words of the DLTensor, of shape and strides, the rank, the type.
        self.tensors: dict[int, tuple[int, int, int, tuple[int, int]]] = {}
        self.inputs: list[tuple[int, int, str]] = []  # position, which input, kind
        self.outputs: list[int] = []
        for position, argument in enumerate(op.signature):
            if argument.is_output:
                self.outputs.append(position)
            else:
                self.inputs.append((position, positions[argument.name], argument.kind))
            if argument.is_tensor:
                rank, descriptor = len(argument.shape), self.words
                self.words += _WORDS + 2 * rank
                self.tensors[position] = (descriptor, descriptor + _WORDS, rank, _DLPACK_TYPES[argument.dtype or ""])
        index = op.signature.max_rows
        self.max_rows = None if index is None else positions[op.signature[index].name]
        self.free: list[Block] = []  # append and pop are atomic

    def launch(self, inputs: tuple[Any, ...], outputs: tuple[torch.Tensor, ...], device: int) -> None:
        """``device`` is a CUDA ordinal, -1 on the CPU."""
        op = self.op
        rows = 1 if self.max_rows is None else inputs[self.max_rows]
        if (rows, device) not in op._prepared:
            prepare(op, rows, device)
        try:
            block = self.free.pop()
        except IndexError:
            block = Block(self)
        integers = block.integers
        for position, index, kind in self.inputs:
            if kind == "tensor":
                self.fill(integers, position, inputs[index], op)
            elif kind == "float":
                block.reals[position] = inputs[index]
            else:
                integers[position] = inputs[index]
        for position, output in zip(self.outputs, outputs):
            self.fill(integers, position, output, op)
        stream, workspace, size = 0, None, 0
        if device >= 0:
            stream = _current_stream(device)
            size = op._workspace_size_at(block.address, self.count)
            if size:
                workspace = torch.empty(size, dtype=torch.uint8, device=torch.device("cuda", device))
        address = None if workspace is None else workspace.data_ptr()
        check(library.hstujit_launch(self.handle, block.address, self.count, address, size, stream))
        self.free.append(block)

    def fill(self, integers: memoryview, position: int, tensor: torch.Tensor, op: Op) -> None:
        descriptor, sizes, rank, _ = self.tensors[position]
        shape = tensor.shape
        if len(shape) != rank:
            argument = op.signature[position]
            raise InvalidArgumentError(
                f"{argument.name} has rank {len(shape)}, shape {tuple(shape)}; it must be {argument.shape_text}"
            )
        device = tensor.get_device()
        integers[descriptor] = tensor.data_ptr()
        integers[descriptor + 1] = _CPU if device < 0 else _CUDA | device << 32
        for size in shape:
            integers[sizes] = size
            sizes += 1
        for stride in tensor.stride():
            integers[sizes] = stride
            sizes += 1


def prepare(op: Op, rows: int, device: int) -> None:
    if device >= 0 and torch.cuda.is_current_stream_capturing():
        raise NotPreparedError(
            f"max_seq_len is {rows}, for which nothing was launched before this capture of a CUDA graph; "
            "call the operator once with it first, since a kernel may have to be compiled"
        )
    op.prepare(rows, device)
    op._prepared.add((rows, device))


class Plan:
    """What follows from the data types, sizes and parameters of a call."""

    def __init__(self, launcher: Launcher, inputs: tuple[Any, ...], chosen: dict[str, Any]) -> None:
        interface = self.interface = launcher.interface
        given = {name: value for name, value in zip(launcher.positions, inputs) if value is not None}
        tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
        described = {name: (tuple(value.shape), dtype_name(value)) for name, value in tensors.items()}
        self.parameters = _instances.parameters_of(interface, described, set(given), chosen)
        op = _instances.op_of(default_context(), interface, "cuda", self.parameters)
        self.signature = op.signature
        _instances.check_arguments(interface, self.signature, set(given))
        for argument in self.signature.inputs:
            if argument.is_tensor and described[argument.name][1] != argument.dtype:
                raise InvalidArgumentError(
                    f"{argument.name} has the data type {described[argument.name][1]}; it must be {argument.dtype}"
                )
        self.dtypes = tuple(DTYPES[argument.dtype or ""] for argument in self.signature.outputs)
        self.sources = dict(self.find_sources(launcher.positions))
        self.aligned: dict[tuple[str, int], AlignedPlan] = {}
        self.shapes = [tuple(map(self.compile_size, argument.shape)) for argument in self.signature.outputs]
        self.plain = all(size is not None for shape in self.shapes for size in shape)

    def find_sources(self, positions: dict[str, int]) -> Any:
        """Where the value of a symbol is read: which input, which axis (None of a number), its factor and bias."""
        for argument in self.signature.inputs:
            if not argument.is_tensor:
                yield argument.name, (positions[argument.name], None, 1, 0)
        for argument in reversed(self.signature.inputs):  # the first one counts
            for axis, size in enumerate(argument.shape):
                if len(size.symbols) == 1 and self.signature.find(size.symbols[0]) is None:
                    yield size.symbols[0], (positions[argument.name], axis, size.factor, size.bias)

    def compile_size(self, size: Dimension) -> Any:
        """None where a symbol has no source: output_shapes finds it out."""
        if any(symbol not in self.sources for symbol in size.symbols):
            return None
        return size.bias, size.factor, tuple(self.sources[symbol] for symbol in size.symbols)

    def output_shapes(self, inputs: tuple[Any, ...], rows: dict[str, Any], read_rows: Callable[[str], Any]) -> Any:
        if self.plain:
            return [[_evaluate(size, inputs) for size in shape] for shape in self.shapes]
        values = {symbol: _value(source, inputs) for symbol, source in self.sources.items()}
        return _instances.output_shapes(self.interface, self.signature, {**values, **rows}, read_rows)


def _value(source: tuple[int, int | None, int, int], inputs: tuple[Any, ...]) -> Any:
    index, axis, factor, bias = source
    if axis is None:
        return inputs[index]
    size = inputs[index].shape[axis] - bias
    return size if factor == 1 else size // factor


def _evaluate(size: tuple[int, int, tuple[Any, ...]], inputs: tuple[Any, ...]) -> Any:
    bias, factor, sources = size
    if not sources:
        return bias
    total = factor
    for source in sources:
        total = total * _value(source, inputs)
    return total + bias


class Launcher:
    """One direction of an operator, on torch tensors."""

    def __init__(self, interface: Interface) -> None:
        self.interface = interface
        self.positions = {argument.name: index for index, argument in enumerate(interface.inputs)}
        self.parameter_names = tuple(parameter.name for parameter in interface.parameters)
        self.rows = tuple(symbol for symbol, _ in interface.rows)
        self.is_tensor = tuple(argument.is_tensor for argument in interface.inputs)
        self.first = self.is_tensor.index(True)
        self.axes = tuple((self.positions[name], axis) for _, axes in interface.sizes for name, axis in axes)
        self.forms = tuple(self.positions[name] for name, _ in interface.choices)
        self.plans: dict[Any, Plan] = {}

    def plan(self, inputs: tuple[Any, ...], parameters: tuple[Any, ...]) -> Plan:
        key: list[Any] = [parameters]
        for value, is_tensor in zip(inputs, self.is_tensor):
            key.append(value if value is None else value.dtype if is_tensor else 0)
        try:
            for index, axis in self.axes:
                if (value := inputs[index]) is not None:
                    key.append(int(value.shape[axis]))
        except IndexError:
            return Plan(self, inputs, dict(zip(self.parameter_names, parameters)))  # which says what is wrong
        for index in self.forms:
            if (value := inputs[index]) is not None:
                key.append(value.dim() == 1 and _is_one(value.shape[0]))
        found = tuple(key)
        plan = self.plans.get(found)
        if plan is None:
            plan = Plan(self, inputs, dict(zip(self.parameter_names, parameters)))
            self.plans[found] = plan
        return plan

    def allocate(
        self, plan: Plan, inputs: tuple[Any, ...], rows: tuple[Any, ...], device: Any, read_rows: Callable[[str], Any]
    ) -> tuple[torch.Tensor, ...]:
        given = {symbol: value for symbol, value in zip(self.rows, rows) if value is not None}
        shapes = plan.output_shapes(inputs, given, read_rows)
        return tuple(torch.empty(shape, dtype=dtype, device=device) for shape, dtype in zip(shapes, plan.dtypes))

    def run(self, inputs: tuple[Any, ...], parameters: tuple[Any, ...], rows: tuple[Any, ...]) -> Any:
        first = inputs[self.first]
        plan = self.plan(inputs, parameters)
        index = first.get_device()
        if index < 0:
            outputs = self.allocate(plan, inputs, rows, first.device, lambda name: self.last_of(inputs, name))
            self.aligned(plan, "host", inputs, outputs).launch(inputs, outputs, -1)
        elif index != _current_device() or not getattr(_seen, "thread", False):
            with torch.cuda.device(index):
                torch.cuda.is_current_stream_capturing()  # makes the device's context this thread's
                _seen.thread = True
                outputs = self.launch_cuda(plan, inputs, rows, index)
        else:
            outputs = self.launch_cuda(plan, inputs, rows, index)
        return self.all_outputs(plan, outputs, first.device)

    def launch_cuda(self, plan: Plan, inputs: tuple[Any, ...], rows: tuple[Any, ...], index: int) -> Any:
        device = torch.device("cuda", index)
        outputs = self.allocate(plan, inputs, rows, device, lambda name: self.last_of(inputs, name))
        self.aligned(plan, "cuda", inputs, outputs).launch(inputs, outputs, index)
        return outputs

    def last_of(self, inputs: tuple[Any, ...], name: str) -> int:
        offsets = inputs[self.positions[name]]
        return int(offsets[-1].item()) if offsets.numel() else 0

    def aligned(
        self, plan: Plan, backend: str, inputs: tuple[Any, ...], outputs: tuple[torch.Tensor, ...]
    ) -> AlignedPlan:
        bits = 0
        for value, is_tensor in zip(inputs, self.is_tensor):
            if is_tensor and value is not None:
                bits |= _bits(value)
        for output in outputs:
            bits |= _bits(output)
        alignment = 16 if not bits & 15 else bits & -bits
        found = plan.aligned.get((backend, alignment))
        if found is None:
            tensors = {a.name: inputs[self.positions[a.name]] for a in plan.signature.inputs if a.is_tensor}
            tensors.update((a.name, output) for a, output in zip(plan.signature.outputs, outputs))
            each = {name: _bits(tensor) for name, tensor in tensors.items()}
            op = _instances.aligned_op(default_context(), self.interface, backend, plan.parameters, each)
            found = AlignedPlan(op, self.positions)
            if alignment == 16:  # with less, which tensor it is of matters
                found = plan.aligned.setdefault((backend, alignment), found)
        return found

    def all_outputs(self, plan: Plan, outputs: tuple[torch.Tensor, ...], device: Any) -> Any:
        """One for each output of the schema: without elements where this instance has none."""
        wanted = self.interface.outputs
        if len(outputs) < len(wanted):
            made = dict(zip((argument.name for argument in plan.signature.outputs), outputs))
            outputs = tuple(made[a.name] if a.name in made else _nothing(a, plan, device) for a in wanted)
        return outputs if len(wanted) > 1 else outputs[0]


def _nothing(argument: Argument, plan: Plan, device: Any) -> torch.Tensor:
    return torch.empty(0, dtype=plan.dtypes[0], device=device)


def _bits(tensor: torch.Tensor) -> int:
    """Address and strides in bytes, or-ed."""
    bits = tensor.data_ptr()
    size = tensor.element_size()
    shape = tensor.shape
    for axis, stride in enumerate(tensor.stride()[:-1]):
        if shape[axis] != 1:
            bits |= stride * size
    return bits


def _is_one(size: Any) -> bool:
    """Not of a size that is known at run time alone."""
    if isinstance(size, int):
        return size == 1
    from torch.fx.experimental import symbolic_shapes

    decide = getattr(symbolic_shapes, "guard_or_false", None) or symbolic_shapes.guard_size_oblivious
    return decide(size == 1)
