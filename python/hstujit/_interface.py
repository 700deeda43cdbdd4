"""What an operator takes. _search.py finds it out."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._library import json_of, library
from .signature import Argument

LARGEST_PLAIN = 2  # a size above it in a signature comes from parameters
# Of numbers that an operator always takes, and that have a usual value.
USUAL = {"eps": 1e-5, "scaling_seqlen": 0}


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


@dataclass(frozen=True)
class Switch:
    """A parameter that follows from which arguments are given."""

    name: str
    brings: frozenset[str]  # present with True, and absent with False
    drops: frozenset[str]  # the other way round
    default: bool

    def value(self, given: set[str]) -> bool:
        brought, dropped = (not names.isdisjoint(given) for names in (self.brings, self.drops))
        if brought and dropped:
            return not self.default  # what would not be there by itself was meant
        if not self.brings and not dropped:
            return True  # without what it drops there is no other way
        return brought or (not dropped and bool(self.drops) and self.default)


@dataclass(frozen=True)
class Interface:
    """What one direction of an operator takes.

    Attributes:
        inputs: every argument that some instance has, in launch order.
        optional: names of inputs that some instance has not.
        outputs: every output that some instance has, in launch order.
        switches: parameters that say whether an argument is there.
        choices: parameters that say which form of the argument of the same name is there, such as attn_scale.
        sizes: parameters that are the size of an axis: argument and axis, the first that is given counts.
        moved: flags with which sizes are those of other axes, such as transpose_mat2: name, value, and these sizes.
        dtypes: parameters that are data types: the arguments that have it, likewise.
        alignment: the parameter that addresses and strides are multiples of, with its values, largest first.
        parameters: all others.
        rows: symbols of outputs that no input determines, and the keyword that does.
        shapes: of every argument, in terms of parameters: ``(L, heads, attn_dim)``.
        allowed: what the library's JSON Schema says of each parameter.
    """

    op: str
    direction: str
    inputs: tuple[Argument, ...]
    optional: frozenset[str]
    outputs: tuple[Argument, ...]
    switches: tuple[Switch, ...]
    choices: tuple[tuple[str, tuple[tuple[str, Argument], ...]], ...]
    sizes: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    moved: tuple[tuple[str, bool, Mapping[str, tuple[tuple[str, int], ...]]], ...]
    dtypes: tuple[tuple[str, tuple[str, ...]], ...]
    alignment: tuple[str, tuple[int, ...]] | None
    parameters: tuple[Parameter, ...]
    rows: tuple[tuple[str, str], ...]
    shapes: Mapping[str, str]
    allowed: Mapping[str, Mapping[str, Any]]

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
        return argument.name not in self.optional and argument.name not in USUAL

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
        for direction in entry["arguments"]
    }
