"""Which instance a call is, and the sizes of its outputs: the C API's hstujit_call."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _structs
from ._interface import Interface
from ._library import Owner, check, created, json_of, library
from ._structs import is_flag
from .context import MOST_CALLS, Context
from .errors import InvalidArgumentError
from .signature import Dimension, Signature

_TENSOR, _REAL, _INTEGER, _FLAG, _TEXT = range(5)  # hstujit_given_kind


@dataclass(frozen=True)
class Given:
    """The arguments of a call.

    Attributes:
        tensors: a DLTensor of each that is given. Its data may be nowhere, and a size -1 that is not known.
        numbers: inputs that are numbers.
        keywords: parameters of the interface.
        rows: keywords that say how many rows an output has, and their values.
    """

    tensors: Mapping[str, _structs.DLTensor]
    numbers: Mapping[str, Any]
    keywords: Mapping[str, Any]
    rows: Mapping[str, Any]

    def key(self, interface: Interface) -> tuple[Any, ...]:
        """Everything that the instance follows from. Of ``rows`` only which are given counts."""
        sizes = tuple(
            tensor.shape[axis] if (tensor := self.tensors.get(name)) is not None and axis < tensor.ndim else None
            for name, axis in interface.decisive_axes
        )
        forms = tuple(
            tensor.ndim == 1 and tensor.shape[0] for name in interface.forms if (tensor := self.tensors.get(name))
        )
        types = tuple((name, t.dtype.code, t.dtype.bits, t.ndim) for name, t in self.tensors.items())
        return interface.name, types, sizes, forms, *self.numbers, *sorted(self.keywords.items()), *self.rows

    def array(self, interface: Interface) -> ctypes.Array[_structs.Given]:
        given, value = _structs.Given, _structs.Value
        entries = [
            given(name.encode(), _TENSOR, value(tensor=ctypes.addressof(tensor)))
            for name, tensor in self.tensors.items()
        ]
        real = {argument.name for argument in interface.inputs if argument.kind == "float"}
        entries += [given(name.encode(), _REAL if name in real else _INTEGER) for name in self.numbers]
        entries += [given(name.encode(), _INTEGER) for name in self.rows]
        entries += [_keyword(name, value) for name, value in self.keywords.items()]
        return (given * len(entries))(*entries)


def _keyword(name: str, value: Any) -> _structs.Given:
    if isinstance(value, str):
        if "\0" in value:
            raise InvalidArgumentError(f"{name} holds a NUL character; no text has one")
        return _structs.Given(name.encode(), _TEXT, text=value.encode(errors="replace"))
    if is_flag(value):
        return _structs.Given(name.encode(), _FLAG, _structs.Value(integer=bool(value)))
    if isinstance(value, float):
        return _structs.Given(name.encode(), _REAL, _structs.Value(real=value))
    integer = _structs.integer_of(name, ctypes.c_int64, value)
    return _structs.Given(name.encode(), _INTEGER, _structs.Value(integer=integer))


class Call(Owner, destroy=library.hstujit_call_destroy):
    """The instance of a call. Any thread may use it.

    Attributes:
        parameters: of the instance, but for the alignment.
        signature: the arguments of a launch, in launch order.
        row_elements: of each output the elements that rows of a new one begin at multiples of.
    """

    def __init__(self, context: Context, interface: Interface, backend: str, given: Given) -> None:
        self.interface, self._context = interface, context
        direction, number = _structs.DIRECTIONS[interface.direction], _structs.BACKENDS[backend]
        options, array = _structs.OpOptions(direction=direction, backend=number), given.array(interface)
        call = context._handle, interface.op.encode(), ctypes.byref(options), array, len(array)
        self._handle = created(library.hstujit_call_create, *call)
        described = json_of(library.hstujit_call_describe, self._handle)
        self.parameters = {name: value for name, value in described["instance"].items() if name != "op"}
        self.signature = Signature.of(described["signature"])
        self.row_elements: list[int] = described["row_elements"]
        self.symbols: list[dict[str, Any]] = described["symbols"]

    def output_sizes(self, values: Any, rows: Iterable[int]) -> list[tuple[int, ...]]:
        """The shape of each output. ``rows`` are the values of :attr:`given_symbols`."""
        ranks = [len(output.shape) for output in self.signature.outputs]
        sizes = (ctypes.c_int64 * sum(ranks))()
        numbers = [*rows]
        told = (ctypes.c_int64 * len(numbers))(*numbers), len(numbers)
        check(library.hstujit_call_output_sizes(self._handle, values, len(values), *told, sizes, len(sizes)))
        return [tuple(sizes[sum(ranks[:at]) : sum(ranks[: at + 1])]) for at in range(len(ranks))]

    @property
    def given_symbols(self) -> list[dict[str, Any]]:
        """Symbols of outputs that a keyword says, or the last element of a tensor."""
        return [symbol for symbol in self.symbols if "keyword" in symbol or "last" in symbol]

    def traced_sizes(
        self, shapes: Mapping[str, Any], numbers: Mapping[str, Any], rows: Mapping[str, Any], read: Callable[[str], Any]
    ) -> list[tuple[Any, ...]]:
        """The shape of each output, of sizes that may be symbols of PyTorch.

        Args:
            read: gives the last element of a tensor of offsets.
        """
        values = dict(numbers)

        def size(text: str) -> Any:
            return Dimension.of(text).size(values)

        for symbol in self.symbols:
            if "of" in symbol:
                found = shapes[symbol["of"]][symbol["axis"]] - symbol["bias"]
                found = found if symbol["factor"] == 1 else found // symbol["factor"]
            elif "sum" in symbol:
                found = sum(map(size, symbol["sum"]))
            elif "rest" in symbol:
                first, *others = map(size, symbol["rest"])
                found = first - sum(others)
            else:
                found = rows[symbol["keyword"]] if "keyword" in symbol else read(symbol["last"])
            values[symbol["symbol"]] = found
        return [tuple(dimension.size(values) for dimension in output.shape) for output in self.signature.outputs]

    def check(self, values: Any) -> None:
        """Sizes and integers of the inputs, as a launch does, where they are known."""
        check(library.hstujit_call_check(self._handle, values, len(values)))

    def op(self, values: Any) -> ctypes.c_void_p:
        """The handle of the op that launches these values, which is the call's."""
        return created(library.hstujit_call_op, self._handle, values, len(values))


def call_of(context: Context, interface: Interface, backend: str, given: Given) -> Call:
    """The call of these arguments, which a context keeps for a while."""
    key = (backend, given.key(interface))
    found: Call | None = context._calls.get(key)
    if found is not None:
        return found
    call = Call(context, interface, backend, given)
    if len(context._calls) >= MOST_CALLS:
        context._calls.clear()
    return context._calls.setdefault(key, call)


def padded(size: Any, elements: int) -> Any:
    """The next multiple of ``elements``."""
    return size if elements == 1 else (size + elements - 1) // elements * elements


def strides_of(shape: tuple[Any, ...], elements: int) -> tuple[Any, ...]:
    """Strides of a new tensor whose rows begin at multiples of so many elements."""
    rows = [*shape[1:-1], padded(shape[-1], elements)] if len(shape) > 1 else []
    return tuple(math.prod(rows[axis:]) for axis in range(len(shape)))
