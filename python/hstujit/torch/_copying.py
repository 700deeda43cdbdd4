"""Operators that copy the tensors which their kernels do not read in place.

Operators of ``torch.ops.hstujit`` refuse such tensors. Functions and layers call them through this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .._interface import interface, interfaces
from ..errors import InvalidArgumentError
from ._in_place import alignments_of, is_traced, readable
from ._schema import NAMESPACE, positional


class Copying:
    """An operator that takes tensors with any strides, at any address. Gradients flow through the copies.

    A call is tried with the tensors as they are, so that one whose tensors are read in place takes no time for it.
    After a call that was refused tensors are looked at first, as they are while PyTorch traces, which refuses nothing.
    """

    def __init__(self, name: str) -> None:
        described = interface(*interfaces()[name])
        self.packet = getattr(getattr(torch.ops, NAMESPACE), name)
        self.alignments = alignments_of(described)
        self.names = [argument for argument, _, _ in positional(described)]
        self.looks_first = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_traced() or self.looks_first:
            args, kwargs = self.copied(args, kwargs)
            return self.packet(*args, **kwargs)
        try:
            return self.packet(*args, **kwargs)
        except InvalidArgumentError:
            given = (*args, *kwargs.values())
            args, kwargs = self.copied(args, kwargs)
            if all(one is other for one, other in zip(given, (*args, *kwargs.values()))):
                raise
        self.looks_first = True
        return self.packet(*args, **kwargs)

    def copied(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with copies of tensors that kernels do not read in place."""
        by_place = tuple([self.argument(name, value) for name, value in zip(self.names, args)])
        return by_place, {name: self.argument(name, value) for name, value in kwargs.items()}

    def argument(self, name: str, value: Any) -> Any:
        return readable(value, self.alignments[name]) if isinstance(value, torch.Tensor) else value


class Operators:
    """All forward operators, by name."""

    def __init__(self) -> None:
        for name, (_, direction) in interfaces().items():
            if direction == "forward":
                setattr(self, name, Copying(name))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Copying: ...


operators = Operators()

__all__ = ["operators"]
