"""One function for each direction of each operator, for arrays of any framework."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import _structs
from ._arrays import CPU, CUDA_HOST, Tensor, backend_of, device_of, empty, on_device
from ._calls import Call, Given, call_of, padded
from ._interface import Interface, interface, interfaces
from ._library import check, library
from ._words import cut, did_you_mean, shown
from .context import Context, context_of
from .errors import InvalidArgumentError
from .op import check_writable, number_of_kind, set_number, workspace_size
from .signature import Argument

_DECLARED = "declared"  # arrays, by names that a text declares
_PYTHON_TYPES = {"tensor": "Array", "float": "float", "int": "int"}


class _Operator:
    """Computes an operator, and returns its output, or a tuple of them in the order of docs/ops-*.md."""

    def __init__(self, described: Interface) -> None:
        self.interface = described
        self.signature = signature_of(described)
        self.names = [name for name in self.signature.parameters if name != _DECLARED]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        unknown = next((name for name in kwargs if name not in self.names), None)
        try:
            if unknown and not kwargs.get(self.interface.declares):
                raise TypeError(f"got an unexpected keyword argument {shown(unknown)}")
            return self.signature.bind(*args, **kwargs)
        except TypeError as error:
            meant = did_you_mean(unknown, self.names) if unknown else ""
            sentence = f"{self.interface.name}: {cut(str(error))}{meant}"
            raise TypeError(f"{sentence}; it takes {', '.join(self.names)}") from None

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bound = self.bind(args, kwargs)
        bound.apply_defaults()
        context, out = context_of(bound.arguments.pop("context")), bound.arguments.pop("out")
        declared = bound.arguments.pop(_DECLARED, {})
        given = {name: value for name, value in bound.arguments.items() if value is not None}
        chosen = {p.name: given[p.name] for p in self.interface.parameters if p.name in given}
        counts = [keyword for _, keyword in self.interface.rows if keyword in given]
        rows = {keyword: _structs.integer_of(keyword, ctypes.c_int64, given[keyword]) for keyword in counts}
        inputs = {a.name: given[a.name] for a in self.interface.inputs if a.name in given} | declared
        arrays = [a.name for a in self.interface.inputs if a.is_tensor]
        first = next((name for name in arrays if name in inputs), None)
        if first is None:
            raise InvalidArgumentError(f"{arrays[0]} is missing; {self.interface.name} is given no array at all")
        device = device_of(first, inputs[first])
        call = _Call(self.interface, context, backend_of(first, device), inputs, chosen, rows, out)
        if device[0] in (CPU, CUDA_HOST):
            return call.run(inputs[first], 0)
        with on_device(inputs[first]) as stream:
            return call.run(inputs[first], stream, device[1])


@dataclass
class _Call:
    interface: Interface
    context: Context
    backend: str
    inputs: dict[str, Any]
    chosen: dict[str, Any]
    rows: dict[str, int]
    out: Any

    def run(self, like: Any, stream: int, device: int = 0) -> Any:
        dlpack_stream = None if self.backend == "host" else stream or 1
        numbers = _numbers(self.interface, self.inputs)
        tensors = {
            name: self.tensor(name, array, dlpack_stream) for name, array in self.inputs.items() if name not in numbers
        }
        outputs = self.given_outputs(dlpack_stream)
        described = {name: tensor.dl_tensor for name, tensor in tensors.items()}
        call = call_of(self.context, self.interface, self.backend, Given(described, numbers, self.chosen, self.rows))
        values = (_structs.Value * len(call.signature))()
        for value, argument in zip(values, call.signature):
            if argument.name in tensors:
                value.tensor = tensors[argument.name].address
            elif argument.name in numbers:
                set_number(value, argument.kind, numbers[argument.name])
        arrays = self.out
        if outputs is None:
            rows = (self.read_rows(symbol, tensors) for symbol in call.given_symbols)
            shapes = call.output_sizes(values, rows)
            made = zip(shapes, call.signature.outputs, call.row_elements)
            arrays = tuple(_new_output(like, shape, a, elements) for shape, a, elements in made)
            outputs = [Tensor(a.name, array, dlpack_stream) for a, array in zip(call.signature.outputs, arrays)]
        self.check_outputs(call, outputs)
        for argument, output in zip(call.signature.outputs, outputs):
            check_writable(argument, output)
            values[call.signature.index(argument)].tensor = output.address
        self.launch(call, values, numbers, like, stream, device)
        del tensors, outputs  # until here nothing of them may be given back
        return arrays if not isinstance(arrays, tuple) or len(arrays) > 1 else arrays[0]

    def read_rows(self, symbol: dict[str, Any], tensors: dict[str, Tensor]) -> int:
        if "keyword" in symbol:
            return self.rows[symbol["keyword"]]
        name = symbol["last"]
        return int(self.inputs[name][-1]) if tensors[name].shape[0] else 0

    def given_outputs(self, dlpack_stream: int | None) -> list[Tensor] | None:
        if self.out is None:
            return None
        arrays = self.out if isinstance(self.out, (tuple, list)) else (self.out,)
        return [self.tensor(f"out[{index}]", array, dlpack_stream) for index, array in enumerate(arrays)]

    def tensor(self, name: str, array: Any, dlpack_stream: int | None) -> Tensor:
        has_derivative = f"{self.interface.name}_backward" in interfaces()
        return Tensor(name, array, dlpack_stream, f"torch.ops.hstujit.{self.interface.name}" if has_derivative else "")

    def check_outputs(self, call: Call, outputs: list[Tensor]) -> None:
        wanted = call.signature.outputs
        if len(outputs) != len(wanted):
            names = ", ".join(f"{argument.name} {argument.shape_text}" for argument in wanted)
            raise InvalidArgumentError(f"out has {len(outputs)} arrays; {self.interface.name} writes {names}")

    def launch(self, call: Call, values: Any, numbers: dict[str, Any], like: Any, stream: int, device: int) -> None:
        op = call.op(values)
        longest = call.signature.max_rows
        rows = 1 if longest is None else numbers[call.signature[longest].name]
        check(library.hstujit_prepare(op, _structs.Problem(max_seq_len=rows, device=device)))
        size = 0 if self.backend == "host" else workspace_size(op, values)
        workspace = empty(like, (size,), "uint8") if size else None
        address = Tensor("workspace", workspace, stream or 1).dl_tensor.data if size else None
        check(library.hstujit_launch(op, values, len(values), address, size, stream))


def _new_output(like: Any, shape: tuple[int, ...], argument: Argument, elements: int) -> Any:
    if elements == 1 or shape[-1] % elements == 0:
        return empty(like, shape, argument.dtype or "")
    return empty(like, (*shape[:-1], padded(shape[-1], elements)), argument.dtype or "")[..., : shape[-1]]


def _numbers(described: Interface, inputs: dict[str, Any]) -> dict[str, Any]:
    """Numbers as the library reads them: their errors name the argument before a shape follows from one."""
    given = [argument for argument in described.inputs if not argument.is_tensor and argument.name in inputs]
    return {argument.name: number_of_kind(argument.name, argument.kind, inputs[argument.name]) for argument in given}


def signature_of(described: Interface) -> inspect.Signature:
    """Inputs in the order of calls, then parameters as keywords."""
    kinds = inspect.Parameter
    parameters = []
    for argument in described.call_order:
        optional = argument.name in described.optional
        annotation = _PYTHON_TYPES[argument.kind] + (" | None" if optional else "")
        default = None if optional else described.usual.get(argument.name, kinds.empty)
        place = kinds.POSITIONAL_OR_KEYWORD
        parameters.append(kinds(argument.name, place, default=default, annotation=annotation))
    keywords = [(p.name, p.type, kinds.empty if p.default is None else p.default) for p in described.parameters]
    keywords += [(keyword, "int | None", None) for _, keyword in described.rows]
    keywords += [("out", "Array | tuple[Array, ...] | None", None), ("context", "Context | None", None)]
    for name, annotation, default in keywords:
        parameters.append(kinds(name, kinds.KEYWORD_ONLY, default=default, annotation=annotation))
    if described.declares:
        parameters.append(kinds(_DECLARED, kinds.VAR_KEYWORD, annotation="Array"))
    return inspect.Signature(parameters, return_annotation="Any" if len(described.outputs) > 1 else "Array")


def docstring_of(described: Interface) -> str:
    operator = described.op
    what = f"``{operator}``" if described.direction == "forward" else f"Backward of ``{operator}``"
    lines = [f"{what} (docs/ops.md links to its page).", "", "Args:"]
    lines += [f"    {a.name}: {_about(described, a)}" for a in described.call_order]
    for parameter in described.parameters:
        allowed = f" One of {', '.join(parameter.allowed)}." if parameter.allowed else ""
        lines.append(f"    {parameter.name}: {parameter.doc}.{allowed}")
    for symbol, keyword in described.rows:
        lines.append(f"    {keyword}: rows of the output, {symbol}. None: they follow from the other arguments.")
    lines.append("    out: where the results go. None: new arrays of the framework of the first one.")
    lines.append("    context: the default one if None.")
    if described.declares:
        lines.append(f"    {_DECLARED}: an array for each name that ``{described.declares}`` declares.")
    lines += ["", "Returns:"]
    lines += [f"    {a.name}: {_about(described, a)}" for a in described.outputs]
    lines += ["", "Raises:", "    hstujit.errors.Error: an argument that is not allowed; the sentence names it."]
    return "\n".join(lines)


def _about(described: Interface, argument: Argument) -> str:
    least = 1 if argument.name == "max_seq_len" else argument.min  # preparing a kernel takes no 0
    limits = ("at least", least), ("at most", argument.max)
    bounds = "".join(f", {word} {bound:.12g}" for word, bound in limits if bound is not None)
    if argument.is_tensor:
        follows = next((name for name, names in described.dtypes.items() if argument.name in names), argument.dtype)
        kind = described.shape_text(argument) + ("" if argument.is_output else f", {follows}")
    else:
        kind = argument.kind + bounds
    optional = argument.name in described.optional and not argument.is_output
    return f"{argument.doc}; {kind}{'; optional' if optional else ''}."


def function(name: str) -> Callable[..., Any]:
    """The function of this name. It has the operator's description as ``interface``."""
    described = interface(*interfaces()[name])
    operator = _Operator(described)

    def call(*args: Any, **kwargs: Any) -> Any:
        return operator.call(args, kwargs)

    call.__name__ = call.__qualname__ = name
    call.__module__ = "hstujit"
    call.__doc__ = docstring_of(described)
    call.__signature__ = operator.signature  # type: ignore[attr-defined]
    call.interface = described  # type: ignore[attr-defined]
    return call
