"""From the arguments of a call to the instance that computes it, and to the shapes of its outputs."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from ._checked import as_integer, is_flag
from ._interface import Axis, Interface, Parameter
from ._structs import check_width
from ._words import either, shown
from .context import Context
from .errors import InvalidArgumentError, InvalidConfigError
from .op import Op
from .signature import Argument, Dimension, Signature, text_of_shape

BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "int32": 4, "int64": 8}  # of an element
LARGEST_COUNT = 2**28  # of rows of a sequence, and of sequences (compiler/spec/limits.h)

Described = Mapping[str, tuple[tuple[int, ...], str]]  # shape and data type of each tensor that is given


def parameters_of(
    interface: Interface, tensors: Described, given: set[str], chosen: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters of the instance, but for the alignment.

    Args:
        given: names of all inputs that are there.
        chosen: parameters of the interface, those that have another value than the default at least.
    """
    # A default is left out, as in a config: what another parameter makes of it is not what was asked for.
    defaults = {parameter.name: parameter.default for parameter in interface.parameters}
    found = {name: value for name, value in chosen.items() if value is not None and value != defaults.get(name, ...)}
    for switch in interface.switches:
        if (value := switch.value(given)) != switch.default:
            found[switch.name] = value
    for name, forms in interface.forms:
        if name in given:
            found[name] = _form_of(name, forms, tensors[name][0])
    for name, axes in interface.axes(chosen).items():
        if axis := next((axis for axis in axes if axis.argument in given), None):
            size = found[name] = _size_of(interface, axis, tensors[axis.argument][0])
            if wanted := _wanted_size(interface.allowed[name], size):
                raise InvalidArgumentError(f"{axis.argument}.shape[{axis.axis}] is {size}; it must be {name}, {wanted}")
    for name, arguments in interface.dtypes:
        if argument := next((argument for argument in arguments if argument in given), None):
            dtype = found[name] = tensors[argument][1]
            if dtype not in (names := interface.allowed[name]["enum"]):
                raise InvalidArgumentError(f"{argument} has dtype {dtype}; it must be {either(names)}")
    return found


def _with_origins(error: InvalidConfigError, interface: Interface, parameters: Mapping[str, Any]) -> InvalidConfigError:
    """Says of a parameter that is the size of an axis which one that is: callers know arrays alone."""
    origins = [
        f"{name} is {axes[0].argument}.shape[{axes[0].axis}]"
        for name, axes in interface.axes(parameters).items()
        if axes and str(error).startswith(f"{interface.op}.{name} is ")
    ]
    return InvalidConfigError("; ".join([str(error), *origins]))


def _wanted_size(schema: Mapping[str, Any], size: int) -> str:
    """What the size must be, where it is not that. The library knows what no schema says."""
    low, high, step = schema["minimum"], schema["maximum"], schema.get("multipleOf", 1)
    if low <= size <= high and size % step == 0:
        return ""
    return ("" if step == 1 else f"a multiple of {step} ") + f"from {low} to {high}"


def _form_of(name: str, forms: tuple[tuple[str, tuple[Dimension, ...]], ...], shape: tuple[int, ...]) -> str:
    """The form whose constant axes fit, those with fewer symbols first."""
    for value, wanted in sorted(forms, key=lambda form: sum(not size.is_constant for size in form[1])):
        if len(shape) == len(wanted) and all(
            size == constant.bias for size, constant in zip(shape, wanted) if constant.is_constant
        ):
            return value
    allowed = " or ".join(text_of_shape(wanted) for _, wanted in forms)
    raise InvalidArgumentError(f"{name} has the shape {shape}; it must be {allowed}")


def _size_of(interface: Interface, axis: Axis, shape: tuple[int, ...]) -> int:
    argument = next(argument for argument in interface.inputs if argument.name == axis.argument)
    if len(shape) != len(argument.shape):
        wanted = interface.shape_text(argument)
        raise InvalidArgumentError(f"{argument.name} has rank {len(shape)}, shape {shape}; it must be {wanted}")
    return int(shape[axis.axis])  # while PyTorch traces, a symbol: a kernel is made for one size


def with_flag(interface: Interface, error: BaseException) -> BaseException:
    """Says of columns that lie in memory one by one, as those of ``weight.T``, which flag takes them as they are."""
    found = re.match(r"(\w+)\.strides\[\d+\] is -?\d+; the innermost stride must be 1$", str(error))
    flags = {axis.when for _, axes in interface.sizes for axis in axes if found and axis.argument == found[1]}
    for flag in sorted(flags - {""}):
        advice = f"where another one is, pass {found and found[1]} transposed, with the other value of {flag}"
        error.args = (f"{error}; {advice}",)
    return error


def check_parameter(parameter: Parameter, value: Any) -> Any:
    """The library checks values; this checks that it is asked with what it can read."""
    if parameter.type == "bool" and is_flag(value):
        return bool(value)
    if parameter.type == "int" and (integer := as_integer(value)) is not None:
        return integer
    if parameter.type != "str" or not isinstance(value, str):
        expected = ", ".join(parameter.allowed) or {"bool": "True or False", "int": "an integer"}[parameter.type]
        raise InvalidArgumentError(f"{parameter.name} is {shown(value)}; it must be {expected} ({parameter.doc})")
    return value


def check_integer(name: str, value: Any) -> int:
    integer = as_integer(value)
    if integer is None:
        raise InvalidArgumentError(f"{name} is {shown(value)}; it must be an integer")
    check_width(name, ctypes.c_int64, integer)
    return integer


def op_of(
    context: Context,
    interface: Interface,
    backend: str,
    parameters: Mapping[str, Any],
    deterministic: bool = False,
) -> Op:
    """The op of these parameters, which a context keeps for a while. The library keeps kernels of CUDA graphs."""
    key = (interface.op, interface.direction, backend, deterministic, *sorted(parameters.items()))
    op: Op | None = context._ops.get(key)
    if op is None:
        instance = {"op": interface.op, **parameters}
        try:
            made = Op(
                instance,
                direction=interface.direction,
                backend=backend,
                context=context,
                deterministic=deterministic,
            )
        except InvalidConfigError as error:
            raise _with_origins(error, interface, parameters) from None
        made.signature  # noqa: B018  before other threads see it
        op = context._ops.keep(key, made)
    return op


def aligned_ops(
    context: Context,
    interface: Interface,
    backend: str,
    parameters: dict[str, Any],
    bits: Mapping[str, int],
    deterministic: bool = False,
) -> list[Op]:
    """The ops from the largest alignment down to the one that all tensors have.

    Args:
        bits: of each tensor, its address and its strides in bytes, or-ed.
    """
    if interface.alignment is None:
        return [op_of(context, interface, backend, parameters, deterministic)]
    name, values = interface.alignment
    ops = []
    for value in values:
        op = op_of(context, interface, backend, {**parameters, name: value}, deterministic)
        for argument in op.signature if value == values[0] else ():
            if bits.get(argument.name, 0) % BYTES.get(argument.dtype or "", 1):
                size = BYTES[argument.dtype or ""]
                raise InvalidArgumentError(
                    f"{argument.name} begins at an address that is no multiple of {size} bytes, an element of "
                    f"{argument.dtype}; it must be one"
                )
        ops.append(op)
        if all(bits[argument.name] % argument.alignment == 0 for argument in op.signature if argument.name in bits):
            break
    return ops


def check_arguments(interface: Interface, signature: Signature, given: set[str]) -> None:
    """Every argument of the instance is there, and no other but those whose presence says what the instance is.

    So uvqk_bias may be given beside uvqk: backward needs its gradient's place, and not its value.
    """
    names = {argument.name for argument in signature.inputs}
    if names == given:
        return
    missing = [argument.name for argument in interface.call_order if argument.name in names - given]
    unused = [argument.name for argument in interface.call_order if argument.name in given - names - interface.deciding]
    if not missing and not unused:
        return
    wrong = [f"{name} is missing" for name in missing] + [f"{name} is not used" for name in unused]
    raise InvalidArgumentError(
        f"{interface.name}: {'; '.join(wrong)}; with these parameters it takes "
        + ", ".join(argument.name for argument in interface.call_order if argument.name in names)
    )


def bind(signature: Signature, shapes: Mapping[str, tuple[int, ...]], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Values of symbols: of what the shapes of inputs say, and integer arguments."""
    values = dict(numbers)
    for argument in signature:
        if argument.is_output or not argument.is_tensor:
            continue
        shape = shapes[argument.name]
        if len(shape) != len(argument.shape):
            raise InvalidArgumentError(
                f"{argument.name} has rank {len(shape)}, shape {tuple(shape)}; it must be {argument.shape_text}"
            )
        for dimension, size in zip(argument.shape, shape):
            if len(dimension.symbols) == 1 and dimension.symbols[0] not in values:
                values[dimension.symbols[0]] = (size - dimension.bias) // dimension.factor
    return values


def output_shapes(
    interface: Interface, signature: Signature, values: dict[str, Any], read_rows: Callable[[str], Any]
) -> list[tuple[Any, ...]]:
    """Shapes of the outputs of an instance.

    Args:
        values: of symbols; what is found out is added.
        read_rows: the last element of a tensor of offsets, 0 of one without elements.
    """
    for output in signature.outputs:
        for symbol in (symbol for dimension in output.shape for symbol in dimension.symbols):
            if symbol not in values:
                values[symbol] = _rows(interface, signature, symbol, values, read_rows)
    shapes = [tuple(dimension.size(values) for dimension in output.shape) for output in signature.outputs]
    check_memory(interface, signature, shapes)
    return shapes


def row_elements(interface: Interface, output: Argument) -> int:
    """How many elements rows of a new output begin at multiples of: the least that some kernel of the operator takes.

    Kernels of layers take rows that begin at multiples of 16 bytes, and rows of ``drab`` have ``max_seq_len`` elements.
    Operators with a choice of alignments take dense rows of any size.
    """
    size = BYTES[output.dtype or ""]
    if len(output.shape) < 2:
        return 1
    least = max(interface.alignment[1][-1], size) if interface.alignment else output.alignment
    elements = min(output.alignment, least) // size
    last = output.shape[-1]
    return 1 if elements <= 1 or (last.is_constant and last.bias % elements == 0) else elements


def padded(size: Any, elements: int) -> Any:
    """The next multiple of ``elements``."""
    return size if elements == 1 else (size + elements - 1) // elements * elements


def strides_of(shape: tuple[Any, ...], elements: int) -> tuple[Any, ...]:
    """Strides of a new tensor whose rows begin at multiples of so many elements."""
    strides, stride = [1] * len(shape), padded(shape[-1], elements)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = stride
        stride = stride * shape[axis]
    return tuple(strides)


def check_memory(interface: Interface, signature: Signature, shapes: list[tuple[Any, ...]]) -> None:
    """The bytes of each output are a number of 64 bits. Sizes that are traced or programs are not known yet."""
    for output, shape in zip(signature.outputs, shapes):
        if all(isinstance(size, int) for size in shape) and math.prod(max(size, 1) for size in shape) >= 2**60:
            raise InvalidArgumentError(
                f"{interface.name}: {output.name} would have the shape {shape}, which no memory has room for"
            )


def size_limits(signature: Signature) -> list[tuple[str, int, int]]:
    """Numbers that sizes of tensors follow from, with the smallest and the largest value."""
    symbols = {symbol for argument in signature for size in argument.shape for symbol in size.symbols}
    return [
        (argument.name, *limits_of(argument))
        for argument in signature.inputs
        if argument.kind == "int" and argument.name in symbols
    ]


def limits_of(count: Argument) -> tuple[int, int]:
    return int(count.min or 0), LARGEST_COUNT if count.max is None else int(count.max)


def check_sizes(
    interface: Interface, signature: Signature, numbers: Mapping[str, Any], rows: Mapping[str, Any]
) -> None:
    """Numbers that sizes of tensors follow from are checked before there are outputs. The library checks all others."""
    for name, least, most in size_limits(signature):
        check_limits(name, numbers[name], least, most)
    for symbol, keyword in interface.rows:
        if symbol in rows:
            check_limits(keyword, rows[symbol], 0, 2**63 - 1)


def check_limits(name: str, value: Any, least: int, most: int) -> None:
    """Of a value that is known: none that PyTorch traces."""
    if isinstance(value, int) and value < least:
        raise InvalidArgumentError(f"{name} is {shown(value)}; it must be at least {least}")
    if isinstance(value, int) and value > most:
        raise InvalidArgumentError(f"{name} is {shown(value)}; it must be at most {most}")


def _rows(
    interface: Interface, signature: Signature, symbol: str, values: Mapping[str, Any], read_rows: Callable[[str], Any]
) -> Any:
    inputs = {a.shape[0] for a in signature.inputs if a.is_tensor and len(a.shape) > 1}
    outputs = {a.shape[0] for a in signature.outputs if len(a.shape) > 1}
    sizes = [known for size in inputs if (known := size.size(values)) is not None]
    offsets = next((a.name for a in signature.inputs if a.semantic == "offsets" and a.axis == symbol), None)
    # Rows of two tensors in one, and back: L is the number of rows of both.
    if symbol == "L" and offsets is None and len(sizes) == len(inputs) > 1:
        return sum(sizes)
    apart = [size for size in outputs if symbol not in size.symbols]
    others = [known for size in apart if (known := size.size(values)) is not None]
    if offsets is not None and [size.text for size in inputs] == ["L"] and len(others) == len(apart) > 0:
        rest = sizes[0] - sum(others)
        if isinstance(rest, int) and rest < 0:
            names = " and ".join(size.text for size in apart)
            raise InvalidArgumentError(
                f"{interface.name}: L is {sizes[0]}; it must be at least {names} = {sum(others)}"
            )
        return rest
    if offsets is not None:
        most, text = _most_rows(signature, values)
        return _bounded(offsets, read_rows(offsets), most, text, values)
    keyword = dict(interface.rows)[symbol]
    raise InvalidArgumentError(f"{interface.name}: {keyword} is missing; nothing else says how many rows it has")


def _most_rows(signature: Signature, values: Mapping[str, Any]) -> tuple[Any, str]:
    """The largest last element that offsets can have, and where it is from.

    It is the rows of the inputs. Where all of these are dense, sequences may have been cut: each has its own limit.
    """
    sizes = {a.shape[0].text: a.shape[0] for a in signature.inputs if a.is_tensor and len(a.shape) > 1}
    rows = {text: size for text, size in sizes.items() if not size.is_constant and size.symbols != ("B",)}
    if any(len(size.symbols) == 1 for size in rows.values()):
        return sum(size.size(values) for size in rows.values()), " + ".join(rows) + " = "
    return (values["B"] + 1) * LARGEST_COUNT, ""


def _bounded(offsets: str, rows: Any, most: Any, text: str, values: Mapping[str, Any]) -> Any:
    if hasattr(rows, "bounded"):  # of a program
        return rows.bounded(most)
    if isinstance(rows, int) and isinstance(most, int):
        if rows < 0:
            raise InvalidArgumentError(f"{offsets}[{values['B']}] is {rows}; it must be at least 0")
        if rows > most:
            raise InvalidArgumentError(f"{offsets}[{values['B']}] is {rows}; it must be at most {text}{most}")
    return rows
