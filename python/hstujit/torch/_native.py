"""Kernels of the operators in C++: libhstujit_torch.so, on PyTorch's stable interface.

That library takes a call from PyTorch's dispatcher to the launch without Python. What it cannot know it asks here, once
for each combination of data types, sizes and parameters: which instance that is, how the values of a launch are read
from the arguments, how large outputs are, and which op reads tensors of an alignment.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import threading
from collections.abc import Callable
from typing import Any

import torch

from .. import _instances, _library
from .._library import error_of
from .._words import not_allowed
from ..context import Context, default_context, on_default_changed
from ..errors import InternalError, InvalidArgumentError
from ..op import Op
from . import _native_structs as structs
from ._determinism import chosen, determinism, refused
from ._launch import Launcher, check_not_capturing, prepare
from ._plan import DTYPES, MOST_PLANS, Plan, Source, dtype_name
from ._schema import keywords, positional
from ._sizes import Size, given_rows, last_of, program_of, size_of
from ._values import DLPACK_TYPES

VARIABLE = "HSTUJIT_TORCH_DISPATCH"
OLDEST = (2, 10)  # with a stable interface that has what the library calls
FILE = "libhstujit_torch.so"
CPU_LIBRARY, CUDA_LIBRARY = b"libtorch_cpu.so", b"libtorch_cuda.so"

KINDS = {"Tensor": structs.TENSOR, "float": structs.REAL, "SymInt": structs.INTEGER, "int": structs.INTEGER,
          "bool": structs.BOOLEAN, "str": structs.TEXT}  # fmt: skip
_DTYPE_NAMES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bool", "bfloat16", "float16",
                "float32", "float64", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz",
                "complex32", "complex64", "complex128")  # fmt: skip


def native_library() -> Library | None:
    """The library, or None where calls go through Python: before PyTorch 2.10, and where there is no such file."""
    wanted = os.environ.get(VARIABLE) or "auto"
    if wanted not in ("auto", "native", "python"):
        raise InvalidArgumentError(not_allowed(VARIABLE, wanted, ("auto", "native", "python")))
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    file = _library.path().parent / FILE
    if wanted == "python" or (wanted == "auto" and (version < OLDEST or not file.exists())):
        return None
    if version < OLDEST:
        raise ImportError(f"{VARIABLE} is native, which needs PyTorch 2.10 or newer; this is {torch.__version__}")
    return loaded(str(file))


class _Raised(threading.local):
    """The exception behind the text of a RuntimeError that PyTorch raises."""

    error: BaseException | None = None


class Library:
    """The C functions of the library, and what it asks of Python (python/native/interface.h)."""

    _error: Any
    _set_error: Any
    _open: Any
    _add_operator: Any
    _implement: Any
    _forget: Any
    _keep_plans: Any
    _set_plan: Any
    _add_op: Any
    _open_python: Any
    _set_names: Any

    def __init__(self, file: str) -> None:
        self.library = ctypes.CDLL(file)
        for name, result, arguments in (
            ("error", ctypes.c_char_p, []),
            ("set_error", None, [ctypes.c_char_p]),
            ("open", ctypes.c_int, [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(structs.Callbacks)]),
            ("add_operator", ctypes.c_int, [ctypes.POINTER(structs.Operator)]),
            ("implement", ctypes.c_int, [ctypes.c_int, ctypes.c_char_p]),
            ("forget", None, []),
            ("keep_plans", None, [ctypes.c_int32]),
            ("set_plan", ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(structs.Plan), ctypes.c_int32]),
            ("add_op", None, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32),
                              ctypes.c_int, ctypes.c_int]),
            ("open_python", ctypes.c_int, [ctypes.POINTER(structs.Python)]),
            ("set_names", None, [ctypes.c_int, ctypes.POINTER(structs.Names)]),
        ):  # fmt: skip
            function = _library.function_of(self.library, "hstujit_torch_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, "_" + name, function)
        self.operators: list[_Operator] = []
        self.raised = _Raised()
        self.owners: dict[int, tuple[Context, list[Op]]] = {}  # what a plan of the library launches, by plan
        self.numbers = itertools.count()
        self.dtypes = _dtypes()
        self.callbacks = structs.Callbacks(
            **{name: kind(self.caller(name)) for name, kind in structs.CALLBACKS.items()}
        )
        self.check(self._open(CPU_LIBRARY, CUDA_LIBRARY, ctypes.byref(self.callbacks)))
        self._keep_plans(MOST_PLANS)
        on_default_changed.append(self._forget)

    def check(self, status: int) -> int:
        if status:
            raise ImportError(f"{FILE}: {self._error().decode(errors='replace')}")
        return status

    def add(self, launcher: Launcher, names: list[str]) -> int:
        """Makes the kernels of an interface those of operators that PyTorch has. The interface's number."""
        operator = _Operator(self, launcher)
        index: int = self._add_operator(ctypes.byref(operator.described))
        self.check(int(index != len(self.operators)))
        self.operators.append(operator)
        for name in names:
            self.check(self._implement(index, name.encode()))
        return index

    def caller(self, name: str) -> Callable[..., int | None]:
        method = getattr(self, "call_" + name)

        def call(*arguments: Any) -> int:
            try:
                method(*arguments)
                return 0
            except BaseException as error:  # ctypes would print it and go on
                self.raised.error = error
                self._set_error(_text_of(error).encode(errors="replace"))
                return 1

        return method if name in ("release", "determinism") else call

    def raised_as(self, error: RuntimeError) -> BaseException | None:
        """The exception that a kernel of the library stands for with this one, None of PyTorch's own."""
        found, self.raised.error = self.raised.error, None
        return found if found is not None and _text_of(found) == str(error) else None

    def call_plan(self, index: int, call: Any, plan: int) -> None:
        self.operators[index].plan(call.contents, plan)

    def call_align(self, index: int, call: Any, plan: int, owner: int, bits: Any) -> None:
        self.operators[index].align(owner, call.contents, plan, bits)

    def call_explain(self, index: int, call: Any, input_: int, last: int) -> None:
        self.operators[index].explain(call.contents, input_, last)

    def call_failed(self, index: int, status: int) -> None:
        raise refused(self.operators[index].interface.name, error_of(status))

    def call_allocate(self, rank: int, sizes: Any, dtype: int, device: int) -> None:
        where = torch.device("cuda", device) if device >= 0 else torch.device("cpu")
        torch.empty(sizes[:rank], dtype=self.dtypes[dtype], device=where)

    def call_capturing(self, max_seq_len: int) -> None:
        check_not_capturing(max_seq_len)

    def call_enter(self, device: int) -> None:
        # A call of the CUDA runtime makes the device's context this thread's; PyTorch may leave out the first.
        torch.cuda.set_device(device)
        torch.cuda.is_current_stream_capturing()

    def call_release(self, owner: int) -> None:
        self.owners.pop(owner, None)

    def call_determinism(self) -> int:
        return determinism()

    def dtype_name(self, dtype: int) -> str:
        return dtype_name(self.dtypes[dtype]) if dtype in self.dtypes else f"number {dtype} of PyTorch"


@functools.cache
def loaded(file: str) -> Library:
    return Library(file)


class _Operator:
    """One direction of an operator, as the library asks for it."""

    def __init__(self, library: Library, launcher: Launcher) -> None:
        self.library, self.launcher = library, launcher
        self.interface = interface = launcher.interface
        entries = [*positional(interface), *keywords(interface)]
        parameters = {parameter.name: index for index, parameter in enumerate(interface.parameters)}
        rows = {keyword: index for index, (_, keyword) in enumerate(interface.rows)}
        groups = ((structs.INPUT, launcher.positions), (structs.PARAMETER, parameters), (structs.ROWS, rows))
        slots = [
            structs.Slot(KINDS[type_.rstrip("?")], type_.endswith("?"), group, names[name])
            for name, type_, _ in entries
            for group, names in groups
            if name in names
        ]
        self.described = structs.Operator(
            slot_count=len(slots),
            slots=structs.array(structs.Slot, slots),
            input_count=len(launcher.positions),
            parameter_count=len(parameters),
            rows_count=len(rows),
            output_count=len(interface.outputs),
            first=launcher.first,
            axis_count=len(launcher.axes),
            axes=structs.array(structs.Axis, (structs.Axis(*axis) for axis in launcher.axes)),
            form_count=len(launcher.forms),
            forms=structs.array(ctypes.c_int32, launcher.forms),
        )

    def inputs(self, call: structs.Call) -> dict[str, Any]:
        """Those that are given."""
        values = ((name, call.inputs[index].python()) for name, index in self.launcher.positions.items())
        return {name: value for name, value in values if value is not None}

    def rows(self, call: structs.Call) -> dict[str, int]:
        """The number of each symbol that is given."""
        given = enumerate(self.launcher.rows)
        return {symbol: index for index, symbol in given if call.rows[index].kind != structs.NONE}

    def found(self, context: Context, call: structs.Call) -> Plan:
        inputs = self.inputs(call)
        self.launcher.check_given(inputs)
        names = self.launcher.parameter_names
        described = {
            name: (tuple(value.sizes[: value.rank]), self.library.dtype_name(value.dtype))
            for name, value in inputs.items()
            if isinstance(value, structs.Tensor)
        }
        chosen = {name: call.parameters[index].python() for index, name in enumerate(names)}
        return Plan(self.interface, self.launcher.positions, context, described, set(inputs), chosen)

    def plan(self, call: structs.Call, to: int) -> None:
        context = default_context()
        plan = self.found(context, call)
        positions = self.launcher.positions
        elements: list[str] = []  # offsets whose last element is a size

        def last(name: str) -> Size:
            elements.append(name)
            return last_of(positions[name])

        shapes = plan.output_shapes(
            lambda source: size_of(source, _instances.limits_of(self.interface.inputs[source[0]])[1]),
            {symbol: given_rows(index) for symbol, index in self.rows(call).items()},
            last,
        )
        outputs = {argument.name: index for index, argument in enumerate(plan.signature.outputs)}
        rows = {argument.name: elements for argument, elements in zip(plan.signature.outputs, plan.row_elements)}
        program = [word for shape in shapes for size in shape for word in (*program_of(size), structs.END)]
        owner = next(self.library.numbers)
        self.library.owners[owner] = context, []
        described = structs.Plan(
            owner=owner,
            argument_count=len(plan.signature),
            arguments=structs.array(
                structs.Argument,
                (self.argument(argument, outputs, rows.get(argument.name, 1)) for argument in plan.signature),
            ),
            max_rows=-1 if plan.max_rows is None else plan.max_rows,
            schema_outputs=structs.array(ctypes.c_int32, (outputs.get(a.name, -1) for a in self.interface.outputs)),
            needs_handles=bool(elements),
            program_length=len(program),
            program=structs.array(ctypes.c_int64, program),
        )
        if self.library._set_plan(to, ctypes.byref(described), len(self.interface.outputs)):
            raise InternalError(f"{self.interface.name}: {self.library._error().decode()}")

    def argument(self, argument: Any, outputs: dict[str, int], row_elements: int) -> structs.Argument:
        source = -1 - outputs[argument.name] if argument.is_output else self.launcher.positions[argument.name]
        if not argument.is_tensor:
            kind = structs.REAL if argument.kind == "float" else structs.INTEGER
            return structs.Argument(kind=kind, source=source)
        code, bits = DLPACK_TYPES[argument.dtype]
        dtype = next(code for code, dtype in self.library.dtypes.items() if dtype == DTYPES[argument.dtype])
        return structs.Argument(structs.TENSOR, source, len(argument.shape), code, bits, dtype, row_elements)

    def align(self, owner: int, call: structs.Call, to: int, bits: Any) -> None:
        context, launched = self.library.owners[owner]
        plan = self.found(context, call)
        backend = "cuda" if call.device >= 0 else "host"
        tensors = [argument.name for argument in plan.signature if argument.is_tensor]
        by_name = {name: bits[index] for index, name in enumerate(tensors)}
        ops_of = functools.partial(_instances.aligned_ops, context, self.interface, backend, plan.parameters, by_name)
        rows = 1 if plan.max_rows is None else call.inputs[plan.max_rows].integer
        ops = chosen(self.interface.name, call.determinism, ops_of, lambda op: prepare(op, rows, call.device))
        count = len(self.interface.alignment[1]) if self.interface.alignment else 1
        for place, op in enumerate(ops):
            alignments = [argument.alignment for argument in op.signature if argument.is_tensor]
            is_last = place == count - 1
            values = structs.array(ctypes.c_int32, alignments)
            if op not in launched:  # the plan has its handle alone
                launched.append(op)
            self.library._add_op(to, place, op._handle, values, len(alignments), is_last)

    def explain(self, call: structs.Call, input_: int, last: int) -> None:
        """``last`` is what was read last, of offsets that are ``input_``."""
        inputs = self.inputs(call)
        given = {symbol: call.rows[index].integer for symbol, index in self.rows(call).items()}
        plan = self.found(default_context(), call)
        numbers = {name: value for name, value in inputs.items() if not isinstance(value, structs.Tensor)}

        def value_of(source: Source) -> int:
            index, axis, factor, bias = source
            value = call.inputs[index].python()
            return value if axis is None else (value.sizes[axis] - bias) // factor

        _instances.check_sizes(self.interface, plan.signature, numbers, given)
        plan.output_shapes(value_of, given, lambda name: last if self.launcher.positions[name] == input_ else 0)
        raise InvalidArgumentError(f"{self.interface.name}: an output would have a size below 0")


@functools.cache
def _dtypes() -> dict[int, torch.dtype]:
    """By the numbers of PyTorch's C interface."""
    library = ctypes.CDLL(CPU_LIBRARY.decode(), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    found = {}
    for name in _DTYPE_NAMES:
        function = getattr(library, "aoti_torch_dtype_" + name)
        function.restype = ctypes.c_int32
        found[function()] = getattr(torch, name)
    return found


def _text_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
