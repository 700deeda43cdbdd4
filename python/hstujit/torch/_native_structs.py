"""The structs of python/native/interface.h, for ctypes."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_double, c_int32, c_int64, c_uint64, c_void_p
from typing import Any

REQUIRED, NONE, TENSOR, REAL, INTEGER, BOOLEAN, TEXT = range(-2, 5)
INPUT, PARAMETER, ROWS = range(3)
END, CONSTANT, SIZE, NUMBER, GIVEN, LAST, ADD, SUBTRACT, MULTIPLY, DIVIDE, BOUNDED = range(11)


class Slot(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("optional", c_int32), ("group", c_int32), ("index", c_int32)]


class Axis(ctypes.Structure):
    _fields_ = [("input", c_int32), ("axis", c_int32)]


class Operator(ctypes.Structure):
    _fields_ = [
        ("slot_count", c_int32),
        ("slots", POINTER(Slot)),
        ("input_count", c_int32),
        ("parameter_count", c_int32),
        ("rows_count", c_int32),
        ("output_count", c_int32),
        ("first", c_int32),
        ("axis_count", c_int32),
        ("axes", POINTER(Axis)),
        ("form_count", c_int32),
        ("forms", POINTER(c_int32)),
    ]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("sizes", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("rank", c_int32),
        ("dtype", c_int32),
        ("device_type", c_int32),
        ("device", c_int32),
    ]


class _Content(ctypes.Union):
    _fields_ = [("tensor", POINTER(Tensor)), ("real", c_double), ("integer", c_int64), ("text", c_void_p)]


class Value(ctypes.Structure):
    _anonymous_ = ("content",)
    _fields_ = [("kind", c_int32), ("size", c_int32), ("content", _Content)]

    def python(self) -> Any:
        """What Python calls it; a tensor is its struct."""
        if self.kind == TENSOR:
            return self.tensor.contents
        if self.kind == REAL:
            return self.real
        if self.kind == BOOLEAN:
            return bool(self.integer)
        if self.kind == TEXT:
            return ctypes.string_at(self.text, self.size).decode()
        return self.integer if self.kind == INTEGER else None


class Call(ctypes.Structure):
    _fields_ = [
        ("inputs", POINTER(Value)),
        ("parameters", POINTER(Value)),
        ("rows", POINTER(Value)),
        ("device", c_int32),
        ("determinism", c_int32),
    ]


class Argument(ctypes.Structure):
    _fields_ = [
        ("kind", c_int32),
        ("source", c_int32),
        ("rank", c_int32),
        ("type_code", c_int32),
        ("type_bits", c_int32),
        ("dtype", c_int32),
        ("row_elements", c_int32),
    ]


class Plan(ctypes.Structure):
    _fields_ = [
        ("owner", c_int64),
        ("argument_count", c_int32),
        ("arguments", POINTER(Argument)),
        ("max_rows", c_int32),
        ("schema_outputs", POINTER(c_int32)),
        ("needs_handles", c_int32),
        ("program_length", c_int64),
        ("program", POINTER(c_int64)),
    ]


_CALL = POINTER(Call)
CALLBACKS = {
    "plan": ctypes.CFUNCTYPE(c_int32, c_int32, _CALL, c_void_p),
    "align": ctypes.CFUNCTYPE(c_int32, c_int32, _CALL, c_void_p, c_int64, POINTER(c_uint64)),
    "explain": ctypes.CFUNCTYPE(c_int32, c_int32, _CALL, c_int32, c_int64),
    "failed": ctypes.CFUNCTYPE(c_int32, c_int32, c_int32),
    "allocate": ctypes.CFUNCTYPE(c_int32, c_int32, POINTER(c_int64), c_int32, c_int32),
    "capturing": ctypes.CFUNCTYPE(c_int32, c_int64),
    "enter": ctypes.CFUNCTYPE(c_int32, c_int32),
    "release": ctypes.CFUNCTYPE(None, c_int64),
    "determinism": ctypes.CFUNCTYPE(c_int32),
}


class Callbacks(ctypes.Structure):
    _fields_ = list(CALLBACKS.items())


class Python(ctypes.Structure):
    _fields_ = [
        *[(name, c_void_p) for name in ("none", "not_implemented", "true_", "false_")],
        *[(name, c_void_p) for name in ("tensor", "parameter", "float_", "int_", "str", "runtime_error")],
        ("guard_count", c_int32),
        ("profiler_count", c_int32),
        ("guards", POINTER(c_void_p)),
        *[(name, c_void_p) for name in ("level_of", "level", "is_grad_enabled", "requires_grad", "is_neg")],
        ("kernels", c_void_p),
        ("tensors_from_handles", c_void_p),
        ("dltensor_from_py_object", c_void_p),
    ]


class Names(ctypes.Structure):
    _fields_ = [
        ("names", POINTER(c_void_p)),
        ("defaults", POINTER(Value)),
        ("positional", c_int32),
        ("override_count", c_int32),
        ("overrides", POINTER(c_void_p)),
        ("otherwise", c_void_p),
    ]


class ExchangeApi(ctypes.Structure):
    """DLPackExchangeAPI of DLPack 1.x."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", c_void_p),
        ("managed_tensor_allocator", c_void_p),
        ("managed_tensor_from_py_object_no_sync", c_void_p),
        ("managed_tensor_to_py_object_no_sync", c_void_p),
        ("dltensor_from_py_object_no_sync", c_void_p),
        ("current_work_stream", c_void_p),
    ]


class MethodDef(ctypes.Structure):
    """PyMethodDef of Python's stable ABI."""

    _fields_ = [("name", ctypes.c_char_p), ("function", c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


def array(kind: Any, values: Any) -> Any:
    made = list(values)
    return (kind * len(made))(*made)
