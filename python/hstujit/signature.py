"""Arguments of operators, as the library describes them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

_DIMENSION = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*(?:\*[A-Za-z_]\w*)*)([+-]\d+)?")


@dataclass(frozen=True)
class Dimension:
    """The size of an axis: factor * product of symbols + bias.

    A symbol is a number that the tensors of a call determine, such as L, or an integer argument. In the description of
    an operator, of which there are many instances, it may be a parameter. ``max_size`` is None where there is no bound.
    """

    text: str
    factor: int
    symbols: tuple[str, ...]
    bias: int
    max_size: int | None = None

    @classmethod
    def of(cls, size: int | str, max_size: int | None = None) -> Dimension:
        if isinstance(size, int):
            return cls(str(size), 0, (), size)
        match = _DIMENSION.fullmatch(size)
        if match is None:
            raise ValueError(f"the library describes a size as {size}, which this package cannot read")
        factor, symbols, bias = match.groups()
        return cls(size, int(factor or 1), tuple(symbols.split("*")), int(bias or 0), max_size)

    def size(self, values: Mapping[str, int]) -> int | None:
        """None where a symbol has no value yet."""
        total = self.factor
        for symbol in self.symbols:
            if symbol not in values:
                return None
            total = total * values[symbol]
        return total + self.bias


@dataclass(frozen=True)
class Argument:
    """One argument of a launch.

    Attributes:
        name: as docs/ops-*.md have it.
        kind: ``"tensor"``, ``"float"`` or ``"int"``.
        role: ``"input"`` or ``"output"``.
        dtype: of tensors: bf16, fp16, fp32, int32 or int64.
        shape: of tensors.
        alignment: of tensors: bytes that the address and all strides but the innermost are multiples of.
        min, max: the values that a number may have, None where there is no bound.
        semantic: what integers mean: offsets, counts, max_rows, seed, or data.
        axis: the symbol of the axis that ``semantic`` is about.
        doc: what it is.
    """

    name: str
    kind: Literal["tensor", "float", "int"]
    role: Literal["input", "output"]
    doc: str
    shape: tuple[Dimension, ...]
    dtype: str | None = None
    alignment: int = 1
    min: float | None = None
    max: float | None = None
    semantic: str = "data"
    axis: str = ""

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Argument:
        shape = json.get("shape", [])
        sizes = map(Dimension.of, shape, json.get("max_sizes", [None] * len(shape)))
        described = {field.name: json[field.name] for field in dataclasses.fields(cls) if field.name in json}
        return cls(**{**described, "shape": tuple(sizes)})

    @property
    def is_tensor(self) -> bool:
        return self.kind == "tensor"

    @property
    def is_output(self) -> bool:
        return self.role == "output"

    @property
    def shape_text(self) -> str:
        return text_of_shape(dimension.text for dimension in self.shape)


def text_of_shape(sizes: Iterable[int | str]) -> str:
    return f"({', '.join(map(str, sizes))})"


_SEQUENCES = "L"  # the axis of all sequences' rows


class Signature(tuple[Argument, ...]):
    """The arguments of a launch, in launch order."""

    @classmethod
    def of(cls, json: Iterable[Mapping[str, Any]]) -> Signature:
        return cls(Argument.of(entry) for entry in json)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self if not argument.is_output)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self if argument.is_output)

    @property
    def max_rows(self) -> int | None:
        """The position of the argument that ``prepare`` is for, None where one kernel serves all lengths.

        Of the longest sequence: an operator over new rows has one of these, too.
        """
        about = ("max_rows", _SEQUENCES)
        return next((i for i, argument in enumerate(self) if (argument.semantic, argument.axis) == about), None)

    def find(self, name: str) -> Argument | None:
        return next((argument for argument in self if argument.name == name), None)


__all__ = ["Argument", "Dimension", "Signature"]
