"""Descriptions of operators, as the library declares them (compiler/spec/call)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._library import json_of, library
from ._words import either
from .signature import Argument, text_of_shape

Described = Mapping[str, Any]  # an object of hstujit_operators in hstujit.h


@dataclass(frozen=True)
class Parameter:
    """A parameter that a caller gives: a keyword of the operator's function."""

    name: str
    type: str  # "bool", "int" or "str"
    default: Any  # None: it is required
    allowed: tuple[str, ...]  # of strings
    doc: str

    @classmethod
    def of(cls, name: str, schema: Described) -> Parameter:
        is_integer = all(isinstance(value, int) for value in schema.get("enum", [None]))
        return cls(
            name=name,
            type={"boolean": "bool", "integer": "int"}.get(schema.get("type", ""), "int" if is_integer else "str"),
            default=schema.get("default"),
            allowed=tuple(map(str, schema.get("enum", ()))),
            doc=schema["description"],
        )


@dataclass(frozen=True)
class Switch:
    """A parameter that follows from which arguments are given."""

    name: str
    brings: frozenset[str]  # present with True, and absent with False
    drops: frozenset[str]  # the other way round


@dataclass(frozen=True)
class PassedOn:
    """An input whose gradient is that of an output times a number, so that backward does not return it."""

    argument: str
    output: str
    factor: str = ""  # the argument that is the number; "" where that is 1
    parameter: str = ""  # "", or the input's gradient is that only where this parameter has the value
    value: Any = None


class Interface:
    """Describes what one direction of an operator takes. There is one object of each.

    Attributes:
        inputs: every argument that some instance has, in launch order. Sizes are in terms of parameters.
        outputs: likewise.
        call_order: inputs as calls have them: what is required, then tensors, then numbers.
        optional: names of arguments that some instance has not.
        usual: numbers of every call that have a default.
        gradients: of backward: the argument of forward whose gradient an argument is.
        wanted: gradients that are only computed where a parameter is True, and that parameter.
        switches: parameters that say whether an argument is there.
        forms: parameters that say which shape the argument of the same name has, such as attn_scale.
        sizes: parameters that are the size of an axis: the axes, of which the first counts that is given.
        dtypes: parameters that are data types: the arguments that have it, of which the first that is given counts.
        parameters: all others but the one that addresses and strides are multiples of.
        declares: the parameter whose text declares inputs beside these; "" where there is none.
        rows: symbols of outputs that no input determines, and the keyword that does.
        passed_on: of backward: inputs of forward whose gradients it does not return.
        forward_only: parameters with another value than the default of which there is no backward direction.
        allowed: what the library's JSON Schema says of each parameter.
    """

    def __init__(self, op: str, direction: str, call: Described, allowed: Described) -> None:
        entries = [(entry, Argument.of(entry)) for entry in call["arguments"]]
        arguments = {argument.name: argument for _, argument in entries}

        def values(key: str) -> dict[str, Any]:
            return {entry["name"]: entry[key] for entry, _ in entries if key in entry}

        self.op, self.direction, self.allowed = op, direction, allowed
        # Name of the function: that of the operator, with ``_backward`` behind it.
        self.name = op if direction == "forward" else op + "_backward"
        self.inputs = tuple(argument for argument in arguments.values() if not argument.is_output)
        self.outputs = tuple(argument for argument in arguments.values() if argument.is_output)
        self.call_order = tuple(arguments[name] for name in call["order"])
        self.optional = frozenset(values("optional"))
        self.usual, self.gradients, self.wanted = values("usual"), values("gradient_of"), values("wanted")
        self.switches = tuple(
            Switch(name, frozenset(names["given"]), frozenset(names["left_out"]))
            for name, names in call["presence"].items()
        )
        self.forms: Mapping[str, Any] = call["forms"]
        self.sizes: Mapping[str, list[dict[str, Any]]] = call["sizes"]
        self.dtypes: Mapping[str, list[str]] = call["dtypes"]
        self.parameters = tuple(Parameter.of(name, allowed[name]) for name in call["keywords"])
        self.declares: str = call.get("declares", "")
        self.rows = tuple((rows["symbol"], rows["keyword"]) for rows in call["rows"])
        self.passed_on = tuple(PassedOn(**passed) for passed in call.get("passed_on", ()))
        self.forward_only: tuple[str, ...] = tuple(call.get("forward_only", ()))

    @functools.cached_property
    def deciding(self) -> frozenset[str]:
        """Inputs whose presence alone says what the instance is, wherever what follows from them is given.

        A seed is none of them: its tensor replaces it.
        """
        deciding = {name for switch in self.switches if not switch.drops for name in switch.brings}
        return frozenset(deciding.difference(*(switch.drops for switch in self.switches)))

    @functools.cached_property
    def decisive_axes(self) -> tuple[tuple[str, int], ...]:
        """Axes of inputs whose sizes are parameters."""
        return tuple(dict.fromkeys((axis["argument"], axis["axis"]) for axes in self.sizes.values() for axis in axes))

    def shape_text(self, argument: Argument) -> str:
        """The shape of an argument; of its forms, the one of fewer axes first."""
        forms = [form["shape"] for form in self.forms.get(argument.name, ())]
        shapes = sorted(forms, key=len) or [[size.text for size in argument.shape]]
        return either([text_of_shape(shape) for shape in shapes])


@functools.cache
def operators() -> dict[str, dict[str, Any]]:
    """The library's description of each operator."""
    return {entry["op"]: entry for entry in json_of(library.hstujit_operators)}


@functools.cache
def interfaces() -> dict[str, tuple[str, str]]:
    """Operator and direction of each function."""
    return {
        op if direction == "forward" else op + "_backward": (op, direction)
        for op, entry in operators().items()
        for direction in entry["calls"]
    }


@functools.cache
def interface(op: str, direction: str) -> Interface:
    entry = operators()[op]
    return Interface(op, direction, entry["calls"][direction], entry["parameters"]["properties"])
