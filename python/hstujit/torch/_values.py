"""The values of a launch in one block of memory, as the C library reads them.

Python is slow at filling memory field by field. So a function is written for each signature that packs all of it at
once: addresses, sizes and strides of the tensors, numbers, and what is the same every time.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

from .._structs import DLTensor
from ..signature import Argument, Signature

# Code and bits of DLPack.
DLPACK_TYPES = {"bf16": (4, 16), "fp16": (2, 16), "fp32": (2, 32), "int32": (0, 32), "int64": (0, 64)}
_CPU, _CUDA = 1, 2
_DESCRIPTOR = ctypes.sizeof(DLTensor) // 8  # words: data; device; rank and type; shape; strides; offset

Fill = Callable[[Any, int, tuple[Any, ...], tuple[Any, ...]], None]


class Layout:
    """Where the values of one signature stand: a word each, then for each tensor its descriptor, shape and strides.

    ``fill(memory, address, inputs, outputs)`` writes them. Inputs are those of the interface, in its order, and
    ``positions`` says which one an argument is. Tensors have the ranks of the signature.
    """

    def __init__(self, signature: Signature, positions: dict[str, int]) -> None:
        self.words = len(signature) + sum(_words_of(argument) for argument in signature if argument.is_tensor)
        self.fill = _write(signature, positions)

    def block(self) -> Block:
        return Block(self.words)


class Block:
    """Memory of one launch at a time."""

    __slots__ = ("memory", "address")

    def __init__(self, words: int) -> None:
        self.memory = (ctypes.c_int64 * words)()
        self.address = ctypes.addressof(self.memory)


def compile_lambda(arguments: str, body: str, **scope: Any) -> Callable[..., Any]:
    """Of texts that are made here, of numbers and of names that are the library's."""
    return eval(f"lambda {arguments}: {body}", scope)


def _words_of(argument: Argument) -> int:
    return _DESCRIPTOR + 2 * len(argument.shape)


def _write(signature: Signature, positions: dict[str, int]) -> Fill:
    outputs = {argument.name: index for index, argument in enumerate(signature.outputs)}
    formats, values, words = [], [], []
    place = len(signature)
    for argument in signature:
        name = f"o{outputs[argument.name]}" if argument.is_output else f"i{positions[argument.name]}"
        formats.append("d" if argument.kind == "float" else "q")
        if not argument.is_tensor:
            values.append(name)
            continue
        rank, sizes = len(argument.shape), place + _DESCRIPTOR
        code, bits = DLPACK_TYPES[argument.dtype or ""]
        values.append(f"address + {8 * place}")
        words += [
            f"{name}.data_ptr()",
            f"{_CPU} if (device := {name}.get_device()) < 0 else {_CUDA} | device << 32",
            str(rank | (code | bits << 8 | 1 << 16) << 32),
            f"address + {8 * sizes}",
            f"address + {8 * (sizes + rank)}",
            "0",
            f"*{name}.shape",
            f"*{name}.stride()",
        ]
        place += _words_of(argument)
    unpacked = [("inputs", "i", len(positions)), ("outputs", "o", len(outputs))]
    lines = [
        "def fill(memory, address, inputs, outputs):",
        *(f"    {''.join(f'{letter}{index}, ' for index in range(count))} = {of}" for of, letter, count in unpacked),
        f"    pack(memory, 0, {', '.join([*values, *words])})",
    ]

    pack = struct.Struct("".join(formats) + "q" * (place - len(signature))).pack_into
    scope: dict[str, Any] = {"pack": pack}
    exec("\n".join(lines), scope)  # of numbers, and names that are made here or are the library's
    return scope["fill"]
