"""Launches an operator on torch tensors, in Python and through ctypes."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .. import _instances
from .._interface import Interface
from .._kept import Kept
from .._library import error_of, library
from ..context import Context, default_context
from ..errors import Error, InvalidArgumentError, NotPreparedError
from ..op import Op
from ..signature import Dimension
from ._determinism import chosen, determinism, refused
from ._plan import DTYPES, MOST_PLANS, Plan, Source, dtype_name
from ._values import Block, Layout, compile_lambda

launch_values = library.hstujit_launch
_current_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 0)
_current_device: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", lambda: 0)
_seen = threading.local()
_MOST_ALIGNMENTS = 64  # of the tensors of one plan that are kept; to find the op of one again is cheap


class AlignedPlan:
    """The launches of one op."""

    def __init__(self, interface: Interface, op: Op, positions: dict[str, int], max_rows: int | None) -> None:
        self.interface, self.op, self.handle = interface, op, op._handle
        self.count = len(op.signature)
        self.layout = Layout(op.signature, positions)
        self.fill = self.layout.fill
        self.max_rows = max_rows
        self.free: list[Block] = []  # append and pop are atomic

    def launch(self, inputs: tuple[Any, ...], outputs: tuple[torch.Tensor, ...], device: int) -> None:
        """``device`` is a CUDA ordinal, -1 on the CPU."""
        op = self.op
        rows = 1 if self.max_rows is None else inputs[self.max_rows]
        if (rows, device) not in op._prepared:
            try:
                prepare(op, rows, device)
            except Error as error:
                raise refused(self.interface.name, error) from None
        try:
            block = self.free.pop()
        except IndexError:
            block = self.layout.block()
        address = block.address
        self.fill(block.memory, address, inputs, outputs)
        if device < 0:
            status = launch_values(self.handle, address, self.count, None, 0, None)
        else:
            # The workspace goes back to the allocator, which gives it to later work on the same stream alone.
            size = op._workspace_size_at(address, self.count)
            workspace = torch.empty(size, dtype=torch.uint8, device=torch.device("cuda", device)) if size else None
            where = None if workspace is None else workspace.data_ptr()
            status = launch_values(self.handle, address, self.count, where, size, _current_stream(device))
        if status:
            raise _instances.with_flag(self.interface, error_of(status))
        self.free.append(block)


def prepare(op: Op, rows: int, device: int) -> None:
    if device >= 0:
        check_not_capturing(rows)
    op._prepare(rows, device)


def check_not_capturing(rows: int) -> None:
    if torch.cuda.is_current_stream_capturing():
        raise NotPreparedError(
            f"max_seq_len is {rows}, for which nothing was launched before this capture of a CUDA graph; "
            "call the operator once with it first, since a kernel may have to be compiled"
        )


class LaunchPlan(Plan):
    """A plan, with functions that read what a launch needs from tensors."""

    def __init__(
        self, launcher: Launcher, context: Context, inputs: tuple[Any, ...], parameters: tuple[Any, ...]
    ) -> None:
        self.determinism = determinism()
        chosen = dict(zip(launcher.parameter_names, parameters))
        given = {name: value for name, value in zip(launcher.positions, inputs) if value is not None}
        tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
        described = {name: (tuple(value.shape), dtype_name(value.dtype)) for name, value in tensors.items()}
        super().__init__(launcher.interface, launcher.positions, context, described, set(given), chosen)
        # By backend, and by alignments where they are less than 16.
        self.aligned: Kept[AlignedPlan] = Kept(_MOST_ALIGNMENTS)
        self.tensor_inputs = tuple(launcher.positions[a.name] for a in self.signature.inputs if a.is_tensor)
        limits = _instances.size_limits(self.signature)
        self.limits = tuple((launcher.positions[name], name, least, most) for name, least, most in limits)
        self.output_bits = self.find_output_bits()
        self.shapes_of = self.compile_shapes()
        self.bits_of = self.compile_bits()

    def find_output_bits(self) -> int:
        """Strides of new outputs in bytes, or-ed: multiples of a row, whose address is aligned."""
        bits = 0
        for argument, dtype, elements in zip(self.signature.outputs, self.dtypes, self.row_elements):
            if len(argument.shape) > 1:
                size = argument.shape[-1]
                bits |= (size.bias if size.is_constant and elements == 1 else elements) * dtype.itemsize
        return bits

    def compile_shapes(self) -> Callable[[tuple[Any, ...]], Any] | None:
        """A function that gives the shapes of outputs; None where output_shapes has to find out a symbol."""
        shapes = [argument.shape for argument in self.signature.outputs]
        if any(symbol not in self.sources for shape in shapes for size in shape for symbol in size.symbols):
            return None

        def text(size: Dimension) -> str:
            factors = [_read(self.sources[symbol]) for symbol in size.symbols]
            return " * ".join([str(size.factor), *factors]) + f" + {size.bias}" if factors else str(size.bias)

        plain = [[text(size).removeprefix("1 * ").removesuffix(" + 0") for size in shape] for shape in shapes]
        return compile_lambda("inputs", "[" + ", ".join(f"({', '.join(shape)},)" for shape in plain) + "]")

    def compile_bits(self) -> Callable[[tuple[Any, ...]], int]:
        """A function that ors addresses of inputs, and strides in bytes, also those that are never used."""
        terms = [str(self.output_bits)]
        for argument, index in zip((a for a in self.signature.inputs if a.is_tensor), self.tensor_inputs):
            terms.append(f"inputs[{index}].data_ptr()")
            if outer := len(argument.shape) - 1:
                first = f"(s := inputs[{index}].stride())[0]"
                strides = " | ".join([first, *(f"s[{axis}]" for axis in range(1, outer))])
                terms.append(f"({strides}) * {DTYPES[argument.dtype or ''].itemsize}")
        return compile_lambda("inputs", " | ".join(terms))


def _value(source: Source, inputs: tuple[Any, ...]) -> Any:
    index, axis, factor, bias = source
    if axis is None:
        return inputs[index]
    size = inputs[index].shape[axis] - bias
    return size if factor == 1 else size // factor


def _read(source: Source) -> str:
    """The expression of _value."""
    index, axis, factor, bias = source
    if axis is None:
        return f"inputs[{index}]"
    size = f"inputs[{index}].shape[{axis}]" + (f" - {bias}" if bias else "")
    return f"(({size}) // {factor})" if factor != 1 else f"({size})"


class Launcher:
    """One direction of an operator, on torch tensors."""

    def __init__(self, interface: Interface) -> None:
        self.interface = interface
        self.positions = {argument.name: index for index, argument in enumerate(interface.inputs)}
        self.parameter_names = tuple(parameter.name for parameter in interface.parameters)
        self.rows = tuple(symbol for symbol, _ in interface.rows)
        self.is_tensor = tuple(argument.is_tensor for argument in interface.inputs)
        required = (argument.is_tensor and argument.name not in interface.optional for argument in interface.inputs)
        self.required = tuple(name for name, is_required in zip(self.positions, required) if is_required)
        self.first = self.positions[self.required[0]]
        of_sizes = (axis for _, axes in interface.sizes for axis in axes)
        self.axes = tuple(dict.fromkeys((self.positions[axis.argument], axis.axis) for axis in of_sizes))
        self.forms = tuple(self.positions[name] for name, _ in interface.forms)

    def plan(self, inputs: tuple[Any, ...], parameters: tuple[Any, ...]) -> LaunchPlan:
        context = default_context()
        try:
            key = self.key_of((determinism(), *parameters), *inputs)
        except (AttributeError, IndexError):
            self.check_given(name for name, value in zip(self.positions, inputs) if value is not None)
            return LaunchPlan(self, context, inputs, parameters)  # which says what is wrong
        plans = context._plans.get(self.interface.name)  # there, so that nothing but a plan's context keeps it
        if plans is None:
            plans = context._plans.setdefault(self.interface.name, Kept(MOST_PLANS))
        plan: LaunchPlan | None = plans.get(key)
        return plan or plans.keep(key, LaunchPlan(self, context, inputs, parameters))

    def check_given(self, names: Iterable[str]) -> None:
        """A schema has no word for a tensor that must be there: PyTorch lets None pass for one."""
        given = set(names)
        for name in self.required:
            if name not in given:
                raise InvalidArgumentError(f"{name} is None; it must be a tensor")

    def check_devices(self, inputs: tuple[Any, ...]) -> None:
        """Of tensors whose addresses no kernel sees; others the library checks."""
        first = inputs[self.first]
        for name, value, is_tensor in zip(self.positions, inputs, self.is_tensor):
            if is_tensor and value is not None and value.device != first.device:
                raise InvalidArgumentError(
                    f"Expected all tensors to be on the same device, but {self.interface.inputs[self.first].name} is "
                    f"on {first.device}, and {name} is on {value.device}"
                )

    @functools.cached_property
    def key_of(self) -> Callable[..., Any]:
        """A function that gives what a plan follows from: data types, ranks, sizes of the instance, what is there."""
        names = [f"i{index}" for index in range(len(self.is_tensor))]
        optional = [argument.name in self.interface.optional for argument in self.interface.inputs]

        def if_there(index: int, text: str) -> str:
            return f"(None if {names[index]} is None else {text})" if optional[index] else text

        parts = [
            if_there(index, f"({name}.dtype, {name}.dim())" if is_tensor else "0")
            for index, (name, is_tensor) in enumerate(zip(names, self.is_tensor))
            if is_tensor or optional[index]
        ]
        parts += [if_there(index, f"int({names[index]}.shape[{axis}])") for index, axis in self.axes]
        parts += [if_there(at, f"({names[at]}.dim() == 1 and is_one({names[at]}.shape[0]))") for at in self.forms]
        body = f"(parameters, {', '.join(parts)})"
        return compile_lambda(f"parameters, {', '.join(names)}", body, is_one=_is_one)

    def allocate(
        self, plan: LaunchPlan, inputs: tuple[Any, ...], rows: tuple[Any, ...], read_rows: Callable[[str], Any]
    ) -> tuple[torch.Tensor, ...]:
        """New outputs on the device of the first tensor."""
        new, new_strided = inputs[self.first].new_empty, inputs[self.first].new_empty_strided
        for index, name, least, most in plan.limits:
            _instances.check_limits(name, inputs[index], least, most)
        if plan.shapes_of is not None:
            shapes = plan.shapes_of(inputs)
        else:
            for (_, keyword), value in zip(self.interface.rows, rows):
                _instances.check_limits(keyword, value, 0, 2**63 - 1)
            given = {symbol: value for symbol, value in zip(self.rows, rows) if value is not None}
            shapes = plan.output_shapes(lambda source: _value(source, inputs), given, read_rows)
        try:
            return tuple([
                new(shape, dtype=dtype) if elements == 1
                else new_strided(shape, _instances.strides_of(shape, elements), dtype=dtype)
                for shape, dtype, elements in zip(shapes, plan.dtypes, plan.row_elements)
            ])  # fmt: skip
        except RuntimeError:
            _instances.check_memory(self.interface, plan.signature, shapes)
            raise

    def run(self, inputs: tuple[Any, ...], parameters: tuple[Any, ...], rows: tuple[Any, ...]) -> Any:
        plan = self.plan(inputs, parameters)
        index = inputs[self.first].get_device()
        if index < 0:
            outputs = self.launch(plan, "host", inputs, rows, index)
        elif index == _current_device() and getattr(_seen, "thread", False):
            outputs = self.launch(plan, "cuda", inputs, rows, index)
        else:
            with torch.cuda.device(index):
                # A call of the CUDA runtime makes the device's context this thread's; PyTorch may leave out the first.
                torch.cuda.set_device(index)
                torch.cuda.is_current_stream_capturing()
                _seen.thread = True
                outputs = self.launch(plan, "cuda", inputs, rows, index)
        return self.all_outputs(plan, outputs, inputs[self.first])

    def launch(self, plan: LaunchPlan, backend: str, inputs: tuple[Any, ...], rows: tuple[Any, ...], index: int) -> Any:
        outputs = self.allocate(plan, inputs, rows, lambda name: self.last_of(inputs, name))
        self.aligned(plan, backend, inputs, outputs).launch(inputs, outputs, index)
        return outputs

    def last_of(self, inputs: tuple[Any, ...], name: str) -> int:
        offsets = inputs[self.positions[name]]
        return int(offsets[-1].item()) if offsets.numel() else 0

    def aligned(
        self, plan: LaunchPlan, backend: str, inputs: tuple[Any, ...], outputs: tuple[torch.Tensor, ...]
    ) -> AlignedPlan:
        if plan.bits_of(inputs) & 15 == 0:
            found = plan.aligned.get(backend)
            return found or plan.aligned.keep(backend, self.align(plan, backend, inputs, outputs))
        # Which tensor it is of matters: some may have less.
        each = tuple(_bits(tensor) & 15 for tensor in (*(inputs[index] for index in plan.tensor_inputs), *outputs))
        found = plan.aligned.get((backend, each))
        return found or plan.aligned.keep((backend, each), self.align(plan, backend, inputs, outputs))

    def align(
        self, plan: LaunchPlan, backend: str, inputs: tuple[Any, ...], outputs: tuple[torch.Tensor, ...]
    ) -> AlignedPlan:
        bits = {a.name: _bits(inputs[self.positions[a.name]]) for a in plan.signature.inputs if a.is_tensor}
        bits.update((a.name, _bits(output)) for a, output in zip(plan.signature.outputs, outputs))
        ops_of = functools.partial(_instances.aligned_ops, plan.context, self.interface, backend, plan.parameters, bits)
        rows = 1 if plan.max_rows is None else inputs[plan.max_rows]
        device = inputs[self.first].get_device()
        ops = chosen(self.interface.name, plan.determinism, ops_of, lambda op: prepare(op, rows, device))
        return AlignedPlan(self.interface, ops[-1], self.positions, plan.max_rows)

    def all_outputs(self, plan: LaunchPlan, outputs: tuple[torch.Tensor, ...], first: torch.Tensor) -> Any:
        """One for each output of the schema: without elements where this instance has none."""
        wanted = self.interface.outputs
        if len(outputs) < len(wanted):
            made = dict(zip((argument.name for argument in plan.signature.outputs), outputs))
            outputs = tuple(
                made[a.name] if a.name in made else first.new_empty(0, dtype=plan.dtypes[0]) for a in wanted
            )
        return outputs if len(wanted) > 1 else outputs[0]


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
