"""The structs of include/hstujit/hstujit.h and of DLPack, for ctypes, and values that they take."""

from __future__ import annotations

import ctypes
import numbers
import os
from collections.abc import Mapping
from typing import Any

from ._words import not_allowed, shown
from .errors import InvalidArgumentError

ABI_VERSION = 2

BACKENDS = {"cuda": 0, "host": 1}
DIRECTIONS = {"forward": 0, "backward": 1}
ON_MISS = {None: 0, "heuristic": 1, "tune": 2, "fail": 3}

LogCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
ProgressCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_char_p)


_INTEGERS = {ctypes.c_int: (True, 32), ctypes.c_int64: (True, 64), ctypes.c_uint64: (False, 64)}  # signed, bits
ADDRESS = ctypes.c_uint64
_INT, _STRING, _POINTER, _SIZES = ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def as_integer(value: Any) -> int | None:
    """An integer of any framework, also an array of rank 0, as Python's. None of anything else."""
    value = _scalar(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return int(value.__index__())
    except TypeError:  # of an array with an axis
        return None


def as_real(value: Any) -> float | None:
    """A real number of any framework as Python's. None of anything else, and of a text."""
    value = _scalar(value)
    try:
        return float(value) if is_number(value) else None
    except OverflowError:
        return None


def _scalar(value: Any) -> Any:
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def is_flag(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # numpy's, too


def integer_of(name: str, kind: Any, value: Any) -> int:
    """An argument that is an integer. ctypes cuts one that its type has no room for; this refuses it."""
    integer = as_integer(value)
    if integer is None:
        raise InvalidArgumentError(f"{name} is {shown(value)}; it must be an integer")
    is_signed, bits = _INTEGERS[kind]
    lowest = -(2 ** (bits - 1)) if is_signed else 0
    if not 0 <= integer - lowest < 2**bits:
        least = "" if is_signed else ", at least 0"
        raise InvalidArgumentError(f"{name} is {shown(value)}; it must be an integer of {bits} bits{least}")
    return integer


def number_of(name: str, value: Any, known: Mapping[str, int]) -> int:
    """The number of a value of an enumeration."""
    if value not in known:
        raise InvalidArgumentError(not_allowed(name, value, known))
    return known[value]


def real_of(name: str, value: Any) -> float:
    real = as_real(value)
    if real is None:
        raise InvalidArgumentError(f"{name} is {shown(value)}; it must be a real number")
    return real


def encode(value: str | os.PathLike[str] | None) -> bytes | None:
    """A path or a name for the C library; a NUL would end it early."""
    if value is None:
        return None
    try:
        encoded = os.fsencode(value)
    except UnicodeEncodeError:
        sentence = f"{shown(value)} holds a character that has no encoding, a lone surrogate"
        raise InvalidArgumentError(sentence) from None
    if b"\0" in encoded:
        raise InvalidArgumentError(f"{shown(value)} holds a NUL character; no path or name has one")
    return encoded


class Sized(ctypes.Structure):
    """A struct that begins with its size."""

    _fields_ = [("size", ctypes.c_size_t)]

    def __init__(self, **values: Any) -> None:
        super().__init__(size=ctypes.sizeof(self))
        kinds = {field[0]: field[1] for field in self._fields_}
        for name, value in values.items():
            kind = kinds[name]
            if kind in _INTEGERS and not isinstance(value, bool):
                value = integer_of(name, kind, value)
            elif kind is ctypes.c_double:
                value = real_of(name, value)
            elif kind is ctypes.c_char_p:
                value = encode(value)
            setattr(self, name, value)


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class ContextOptions(Sized):
    _fields_ = [
        ("cache_dir", _STRING), ("cache_path", _STRING), ("on_miss", _INT),
        ("log", LogCallback), ("log_user", _POINTER), ("deterministic", _INT),
    ]  # fmt: skip


class Problem(Sized):
    _fields_ = [("max_seq_len", ctypes.c_int64), ("device", ctypes.c_int)]


class OpOptions(Sized):
    _fields_ = [(name, ctypes.c_int) for name in ("direction", "backend", "deterministic")]


class ErrorFields(Sized):
    _fields_ = [(name, ctypes.c_char_p) for name in ("argument", "value", "allowed", "hint")]


class RunOptions(Sized):
    _fields_ = [
        ("arch", _STRING), ("op_name", _STRING), ("jobs", _INT), ("budget_s", ctypes.c_double), ("backend", _INT),
        ("check", _INT), ("device", _INT), ("repeats", _INT), ("directory", _STRING), ("seed", ctypes.c_uint64),
        ("max_rows", ctypes.c_int64), ("progress", ProgressCallback), ("progress_user", _POINTER),
        ("shard_index", _INT), ("shard_count", _INT), ("cancel", _POINTER),  # of an int
    ]  # fmt: skip


class CacheExportOptions(Sized):
    _fields_ = [("op", ctypes.c_char_p)]


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", _POINTER), ("device", DLDevice), ("ndim", ctypes.c_int32), ("dtype", DLDataType),
        ("shape", _SIZES), ("strides", _SIZES), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", _POINTER), ("deleter", _POINTER),
        ("flags", ctypes.c_uint64), ("dl_tensor", DLTensor),
    ]  # fmt: skip


class Value(ctypes.Union):
    _fields_ = [("tensor", ctypes.c_void_p), ("real", ctypes.c_double), ("integer", ctypes.c_int64)]


UNKNOWN_INTEGER = -(2**63)  # of a traced call


class Given(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("value", Value), ("text", ctypes.c_char_p)]
