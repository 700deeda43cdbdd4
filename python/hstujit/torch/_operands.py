"""Operands: tensors that a score or a mask of attention reads, with their declarations (docs/expressions.md)."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from .._words import check_type
from ..errors import InvalidArgumentError
from ._arguments import integers_as
from ._nodes import has_proxies
from ._schema import NAMES
from ._tracing import Operand, Refused, Term, index_of

# A row's place, without spaces: row, col + 1, min(row + 1, n - 1).
_OFFSET, _BOUND = r"((row|col)([+-]\d+)?|-?\d+\+(row|col))", r"(n([+-]\d+)?|-?\d+)"
_PLACE = re.compile(rf"{_OFFSET}|(min|max|clamp)\({_OFFSET}(,{_BOUND})+\)")
Facts = tuple[str, str, int, bool, bool, bool]  # the arguments of a Readable; PyTorch has such constants in a graph


def _saying(kind: str, what: str) -> Callable[[torch.Tensor], Operand]:
    def say(tensor: torch.Tensor) -> Operand:
        return Operand(kind, tensor)

    say.__name__, say.__qualname__, say.__doc__ = kind, kind, f"An operand {what}."
    return say


row = _saying("row", "with an element for each row of the batch: (L) or (L, heads)")
table = _saying("table", "that is read at an index: (entries) or (entries, heads)")
head = _saying("head", "with an element for each head: (heads)")
scalar = _saying("scalar", "that is one number: () or (1)")
sequence = _saying("sequence", "with an element for each sequence of the batch: (B)")
pair = _saying("pair", "with an element for each pair: (B, pair heads, max_seq_len, max_seq_len)")


class Readable(Term):
    """An operand in the text of a score. Which kind it is follows from how it is read."""

    def __init__(self, name: str, kind: str, rank: int, is_of_rows: bool, is_of_heads: bool, is_one: bool) -> None:
        super().__init__(name)
        self._kind, self._rank, self._is_one = kind, rank, is_one
        self._is_of_rows, self._is_of_heads = is_of_rows, is_of_heads
        self._reads: list[str] = []  # the index of each, "" where there is none

    def _used(self) -> Term:
        if self._kind not in ("scalar", "sequence") and not self._is_one:
            raise Refused(f"it computes with the tensor `{self}`, of which it must read an element: `{self}[index]`")
        return self._read("")

    def __getitem__(self, index: Any) -> Term:
        indices = list(index) if isinstance(index, tuple) else [index]
        if len(indices) != self._rank:
            raise Refused(f"it reads `{self}` at {len(indices)} indices; the tensor has {self._rank} axes")
        if len(indices) == 1 and repr(indices[0]) == "b" and self._kind in ("", "sequence"):
            self._kind = "sequence"
            return self._used()
        if self._kind in ("", "pair") and list(map(repr, indices)) == ["b", "head", "row", "col"]:
            return self._read("row, col")
        places = [index_of(place, f"`{self}`") for place in indices]
        if self._rank > 1 and places[1] != "head":
            raise Refused(
                f"it reads `{self}` at `{places[1]}` of its second axis, which is that of heads: `{self}[i, h]`"
            )
        is_head = self._rank == 1 and places[0] == "head"
        is_read_so = self._kind == "head" or (not self._kind and self._is_of_heads)
        return self._read("" if is_head and is_read_so else places[0])

    def _read(self, index: str) -> Term:
        self._reads.append(index)
        return Term(f"{self}[{index}]" if index else repr(self))

    def read_in(self, text: str) -> None:
        """Finds where a text reads it."""
        for found in re.finditer(rf"(?<![\w.]){re.escape(repr(self))}\b\s*(?!\()", text):
            depth, end = 0, found.end()
            for end in range(found.end(), len(text)):
                depth += (text[end] in "[(") - (text[end] in "])")
                if depth <= 0:
                    break
            self._reads.append(text[found.end() + 1 : end].replace(" ", ""))

    def kind(self) -> str:
        if self._kind or self._rank == 4:
            return self._kind or "pair"
        if not self._reads:
            raise InvalidArgumentError(f"operands has {self}, which neither the score nor the mask reads")
        if not any(self._reads):
            return "scalar" if self._is_one else "head"  # of one head, too, which masks do not read
        places = [bool(_PLACE.fullmatch(re.sub(r"\s", "", index))) for index in self._reads]
        # The kind follows from the text alone: a batch with as many rows as a table has entries changes nothing.
        for index, is_place in zip(self._reads, places):
            if not is_place and (any(places) or _is_of_one(index)):
                raise InvalidArgumentError(
                    f"{self} is read at `{index}`, which may be a row of the sequence or an entry of a table; it must "
                    "be said to be hstujit.torch.row(...) or hstujit.torch.table(...)"
                )
        if all(places) and not self._is_of_rows:
            raise InvalidArgumentError(
                f"{self} is read at `{self._reads[0]}`, and has not as many elements as the batch has rows; it must "
                "have them, or be said to be hstujit.torch.table(...)"
            )
        return "row" if all(places) else "table"


def _is_of_one(index: str) -> bool:
    """Whether an index follows from the row alone, or from the column alone: from no pair, and from no tensor."""
    return "[" not in index and len({*re.findall(r"\b(row|col)\b", index)}) == 1


class Reads:
    """The operands of one score: those that are named, and those that a function finds around it."""

    def __init__(self, named: Iterable[Facts], q: torch.Tensor | None = None, rows: Any = 0) -> None:
        self.named = {facts[0]: Readable(*facts) for facts in named}
        self.tensors: dict[str, Operand] = {}  # that are found
        self.found: dict[int, Readable] = {}
        self.q, self.rows = q, rows

    def reading(self, value: torch.Tensor | Operand) -> Term | None:
        """The term of a tensor, None where that is a number."""
        operand = value if isinstance(value, Operand) else Operand("", value)
        tensor = operand.tensor
        if self.q is None:
            raise Refused(
                "it reads a tensor that `operands` does not have, and must have in a layer and under torch.compile"
            )
        if operand is not value and tensor.dim() == 0 and not tensor.requires_grad and tensor.device != self.q.device:
            return None
        if id(tensor) not in self.found:
            name = next(n for n in (f"operand{i}" for i in range(1000)) if n not in (*self.named, *self.tensors))
            self.tensors[name] = operand
            self.found[id(tensor)] = Readable(*facts_of(name, operand, self.q, self.rows))
        return self.found[id(tensor)]

    def kinds(self) -> tuple[str, ...]:
        """Of all, the named ones first."""
        return tuple(readable.kind() for readable in (*self.named.values(), *self.found.values()))


def facts_of(name: str, value: torch.Tensor | Operand, q: torch.Tensor, rows: Any) -> Facts:
    kind, tensor = (value.kind, value.tensor) if isinstance(value, Operand) else ("", value)
    check_type(name, tensor, torch.Tensor, "a tensor")
    if name in ("b", "h"):
        raise InvalidArgumentError(f"operands has {name}, by which functions know the sequence or the head; rename it")
    size = tensor.shape[0] if tensor.dim() > 0 else 1
    is_of_heads, is_one = (tensor.dim() < 2 and _is(size, other) for other in (q.shape[1], 1))
    # A graph, whose L is any, gets no guard of it: there the operator refuses another size.
    return name, kind, tensor.dim(), torch.compiler.is_compiling() or _is(size, rows), is_of_heads, is_one


def _is(size: Any, other: Any) -> bool:
    """Whether a size is one that kernels are made for. A size that is a symbol of a graph is none."""
    if torch.compiler.is_compiling():
        from torch.fx.experimental.symbolic_shapes import has_static_value

        if not has_static_value(size):
            return False
    return any([size == other])  # asks for the value, which `bool` leaves to a graph


def declared(
    operands: Mapping[str, torch.Tensor | Operand], kinds: Iterable[str], q: torch.Tensor
) -> tuple[str, list[torch.Tensor]]:
    """The text of declarations, and the tensors as kernels read them."""
    texts, tensors = [], []
    for (name, value), kind in zip(operands.items(), kinds):
        tensor = as_read(name, value.tensor if isinstance(value, Operand) else value)
        words = [str(int(tensor.shape[0]))] if kind == "table" else []
        words += [NAMES[tensor.dtype]] if tensor.dtype != torch.float32 else []
        if tensor.dim() > 1:
            words.append("heads" if int(tensor.shape[1]) == int(q.shape[1]) else f"heads={int(tensor.shape[1])}")
        words += ["grad"] if tensor.requires_grad and torch.is_grad_enabled() else []
        texts.append(declaration(name, kind, words))
        tensors.append(tensor)
    return ", ".join(texts), tensors


def as_read(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as kernels read it: fp64 as fp32, other integers as int64, and one number with an axis."""
    check_type(name, tensor, torch.Tensor, "a tensor")
    if tensor.dtype == torch.float64:
        tensor = tensor.float()
    elif tensor.dtype not in NAMES:
        tensor = integers_as(name, tensor, torch.int64)
    return tensor.reshape(1) if tensor.dim() == 0 else tensor


def declaration(name: str, kind: str, words: Sequence[str]) -> str:
    return f"{name}: {kind}({', '.join(words)})" if words else f"{name}: {kind}"


@functools.cache
def declarations_of(text: str) -> list[tuple[str, str, list[str]]]:
    """Name, kind and properties of each operand in a text. The library says where a text is wrong."""
    found = re.findall(r"(\w+)\s*:\s*(\w+)\s*(?:\(([^)]*)\))?", text)
    return [(name, kind, [word.strip() for word in words.split(",") if word.strip()]) for name, kind, words in found]


def declared_facts(text: str) -> list[Facts]:
    """Facts of operands whose kinds a text says."""
    declarations = declarations_of(text)
    ranks = [2 if any(word.startswith("heads") for word in words) else 1 for _, _, words in declarations]
    return [(name, kind, rank, False, False, False) for (name, kind, _), rank in zip(declarations, ranks)]


def in_order(names: Sequence[str], operands: Any) -> list[Any]:
    """The tensors of a call in the order of their declarations. All of them may be one input of a graph of torch.fx."""
    given: Any = {} if operands is None else operands
    if has_proxies((given,)):
        return [given[name] for name in names]
    check_type("operands", given, Mapping, "a mapping from names to tensors")
    if set(given) != set(names):
        found, wanted = (", ".join(map(str, some)) or "nothing" for some in (given, names))
        raise InvalidArgumentError(f"operands has {found}; it must have {wanted}, as the layer's config declares")
    return [given[name] for name in names]
