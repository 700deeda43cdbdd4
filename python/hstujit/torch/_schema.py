"""Arguments of operators, by the schemas that libhstujit_torch.so has registered."""

from __future__ import annotations

import functools
from typing import Any

import torch

NAMESPACE = "hstujit"
OPERATORS: Any = getattr(torch.ops, NAMESPACE)
DECLARED = "operand_tensors"  # what the text ``operands`` declares, in its order


def operator_of(name: str) -> Any:
    return getattr(OPERATORS, name).default


@functools.cache
def positional(name: str) -> tuple[str, ...]:
    """Names of the arguments of an operator that need no keyword, in order."""
    return tuple(argument.name for argument in operator_of(name)._schema.arguments if not argument.kwarg_only)


@functools.cache
def defaults(name: str) -> dict[str, Any]:
    """Every argument of an operator, with its default, or None where it has none."""
    return {argument.name: argument.default_value for argument in operator_of(name)._schema.arguments}


def by_name(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Every argument of a call of an operator."""
    return {**defaults(name), **dict(zip(positional(name), args)), **kwargs}
