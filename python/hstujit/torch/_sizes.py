"""Sizes of outputs as programs that python/native/sizes.h runs."""

from __future__ import annotations

from ._native_structs import ADD, BOUNDED, CONSTANT, DIVIDE, GIVEN, LAST, MULTIPLY, NUMBER, SIZE, SUBTRACT
from ._plan import Source


class Size:
    """A number that each call has another value of. Arithmetic with it gives the program that does the same."""

    def __init__(self, program: tuple[int, ...]) -> None:
        self.program = program

    def __add__(self, other: Size | int) -> Size:
        return self if other == 0 else self.operated(other, ADD)

    def __radd__(self, other: int) -> Size:
        return self + other

    def __sub__(self, other: Size | int) -> Size:
        return self if other == 0 else self.operated(other, SUBTRACT)

    def __mul__(self, other: Size | int) -> Size:
        return self if other == 1 else self.operated(other, MULTIPLY)

    def __rmul__(self, other: int) -> Size:
        return self * other

    def __floordiv__(self, other: Size | int) -> Size:
        return self if other == 1 else self.operated(other, DIVIDE)

    def bounded(self, most: Size | int) -> Size:
        """The same, where it is from 0 to ``most``; there is no size otherwise."""
        return self.operated(most, BOUNDED)

    def operated(self, other: Size | int, operation: int) -> Size:
        return Size((*self.program, *program_of(other), operation))


def program_of(size: Size | int) -> tuple[int, ...]:
    return size.program if isinstance(size, Size) else (CONSTANT, size)


def size_of(source: Source, most: int) -> Size:
    """``most`` is the largest value of a number."""
    index, axis, factor, bias = source
    if axis is None:
        return Size((NUMBER, index)).bounded(most)
    return (Size((SIZE, index, axis)) - bias) // factor


def given_rows(index: int) -> Size:
    return Size((GIVEN, index))


def last_of(index: int) -> Size:
    return Size((LAST, index))
