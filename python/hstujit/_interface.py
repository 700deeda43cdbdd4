"""What an operator takes, as the library declares it (compiler/spec/call)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._library import json_of, library
from ._words import either
from .signature import Argument, Dimension, text_of_shape


@dataclass(frozen=True)
class Parameter:
    """A parameter that a caller gives: a keyword of the operator's function."""

    name: str
    type: str  # "bool", "int" or "str"
    default: Any  # None: it is required
    allowed: tuple[str, ...]  # of strings
    minimum: int | None
    maximum: int | None
    doc: str

    @classmethod
    def of(cls, name: str, schema: Mapping[str, Any]) -> Parameter:
        is_integer = all(isinstance(value, int) for value in schema.get("enum", [None]))
        return cls(
            name=name,
            type={"boolean": "bool", "integer": "int"}.get(schema.get("type", ""), "int" if is_integer else "str"),
            default=schema.get("default"),
            allowed=tuple(map(str, schema.get("enum", ()))),
            minimum=schema.get("minimum"),
            maximum=schema.get("maximum"),
            doc=schema["description"],
        )


@dataclass(frozen=True)
class Switch:
    """A parameter that follows from which arguments are given."""

    name: str
    brings: frozenset[str]  # present with True, and absent with False
    drops: frozenset[str]  # the other way round


@dataclass(frozen=True)
class Axis:
    """An axis of an input whose size is a parameter, under conditions on flags."""

    argument: str
    axis: int
    unless: tuple[str, ...]  # the size is another one where one of these flags is True
    when: str  # "", or the size is this one only where the flag is True

    def holds(self, chosen: Mapping[str, Any]) -> bool:
        return not any(chosen.get(flag) for flag in self.unless) and (not self.when or bool(chosen.get(self.when)))


@dataclass(frozen=True)
class PassedOn:
    """An input whose gradient is that of an output times a number, so that backward does not return it.

    Attributes:
        factor: the argument that is the number; "" where that is 1.
        parameter: "", or the input's gradient is that only where this parameter has the value.
    """

    argument: str
    output: str
    factor: str
    parameter: str
    value: Any


@dataclass(frozen=True, eq=False)
class Interface:
    """What one direction of an operator takes. There is one object of each.

    Attributes:
        inputs: every argument that some instance has, in launch order. Sizes are in terms of parameters.
        outputs: likewise.
        optional: names of arguments that some instance has not.
        usual: numbers of every call that have a default.
        gradients: of backward: the argument of forward whose gradient an argument is.
        wanted: gradients that are only computed where a parameter is True, and that parameter.
        switches: parameters that say whether an argument is there.
        forms: parameters that say which shape the argument of the same name has, such as attn_scale: value and shape.
        sizes: parameters that are the size of an axis. The first axis that holds and whose argument is given counts.
        dtypes: parameters that are data types: the arguments that have it, of which the first that is given counts.
        alignment: the parameter that addresses and strides are multiples of, with its values, largest first.
        parameters: all others.
        rows: symbols of outputs that no input determines, and the keyword that does.
        passed_on: of backward: inputs of forward whose gradients it does not return.
        forward_only: parameters with another value than the default of which there is no backward direction.
        allowed: what the library's JSON Schema says of each parameter.
    """

    op: str
    direction: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    optional: frozenset[str]
    usual: Mapping[str, float]
    gradients: Mapping[str, str]
    wanted: Mapping[str, str]
    switches: tuple[Switch, ...]
    forms: tuple[tuple[str, tuple[tuple[str, tuple[Dimension, ...]], ...]], ...]
    sizes: tuple[tuple[str, tuple[Axis, ...]], ...]
    dtypes: tuple[tuple[str, tuple[str, ...]], ...]
    alignment: tuple[str, tuple[int, ...]] | None
    parameters: tuple[Parameter, ...]
    rows: tuple[tuple[str, str], ...]
    passed_on: tuple[PassedOn, ...]
    forward_only: tuple[str, ...]
    allowed: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, op: str, direction: str, call: Mapping[str, Any], allowed: Mapping[str, Any]) -> Interface:
        """``call`` is the library's description (hstujit_operators in hstujit.h)."""
        arguments = [(entry, Argument.of(entry)) for entry in call["arguments"]]
        alignment = call.get("alignment")

        def values(key: str) -> dict[str, Any]:
            return {entry["name"]: entry[key] for entry, _ in arguments if key in entry}

        return cls(
            op=op,
            direction=direction,
            inputs=tuple(argument for _, argument in arguments if not argument.is_output),
            outputs=tuple(argument for _, argument in arguments if argument.is_output),
            optional=frozenset(values("optional")),
            usual=values("usual"),
            gradients=values("gradient_of"),
            wanted=values("wanted"),
            switches=tuple(
                Switch(name, frozenset(names["given"]), frozenset(names["left_out"]))
                for name, names in call["presence"].items()
            ),
            forms=tuple(
                (name, tuple((form["value"], tuple(map(Dimension.of, form["shape"]))) for form in forms))
                for name, forms in call["forms"].items()
            ),
            sizes=tuple(
                (
                    name,
                    tuple(
                        Axis(axis["argument"], axis["axis"], tuple(axis.get("unless", ())), axis.get("when", ""))
                        for axis in axes
                    ),
                )
                for name, axes in call["sizes"].items()
            ),
            dtypes=tuple((name, tuple(names)) for name, names in call["dtypes"].items()),
            alignment=(alignment, tuple(sorted(allowed[alignment]["enum"], reverse=True))) if alignment else None,
            parameters=tuple(Parameter.of(name, allowed[name]) for name in call["keywords"]),
            rows=tuple((rows["symbol"], rows["keyword"]) for rows in call["rows"]),
            passed_on=tuple(
                PassedOn(
                    passed["argument"],
                    passed["output"],
                    passed.get("factor", ""),
                    passed.get("parameter", ""),
                    passed.get("value"),
                )
                for passed in call.get("passed_on", ())
            ),
            forward_only=tuple(call.get("forward_only", ())),
            allowed=allowed,
        )

    @functools.cached_property
    def deciding(self) -> frozenset[str]:
        """Inputs whose presence alone says what the instance is, wherever what follows from them is given.

        A seed is none of them: its tensor replaces it.
        """
        deciding = {name for switch in self.switches if not switch.drops for name in switch.brings}
        return frozenset(deciding.difference(*(switch.drops for switch in self.switches)))

    @functools.cached_property
    def call_order(self) -> tuple[Argument, ...]:
        """Inputs as calls in Python have them: what is required, in launch order, then tensors, then numbers.

        The tensor of a seed comes last, because calls by position are older than it.
        """
        given = [argument for argument in self.inputs if self.is_required(argument)]
        others = [argument for argument in self.inputs if not self.is_required(argument)]
        return (*given, *sorted(others, key=_place))

    def is_required(self, argument: Argument) -> bool:
        return argument.name not in self.optional and argument.name not in self.usual

    @functools.cached_property
    def decisive_axes(self) -> tuple[tuple[str, int], ...]:
        """Axes of inputs whose sizes are parameters."""
        return tuple(dict.fromkeys((axis.argument, axis.axis) for _, axes in self.sizes for axis in axes))

    def is_real(self, name: str) -> bool:
        return any(argument.name == name and argument.kind == "float" for argument in self.inputs)

    def shape_text(self, argument: Argument) -> str:
        """Of its forms, the one of fewer axes first."""
        forms = [shape for _, shape in dict(self.forms).get(argument.name, ())] or [argument.shape]
        return either([text_of_shape(shape) for shape in sorted(forms, key=len)])

    @property
    def name(self) -> str:
        """Of the function: that of the operator, with ``_backward`` behind it."""
        return self.op if self.direction == "forward" else self.op + "_backward"


def _place(argument: Argument) -> int:
    """Of an input that need not be given: less stands first."""
    if argument.is_tensor:
        return 2 if argument.semantic == "seed" else 0
    return 1


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
    return Interface.of(op, direction, entry["calls"][direction], entry["parameters"]["properties"])
