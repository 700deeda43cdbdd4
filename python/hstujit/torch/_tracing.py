"""Texts of masks and scores (docs/expressions.md) from Python functions in the manner of FlexAttention.

A function is called once with terms in place of numbers: what it computes of them with operators and functions of
PyTorch becomes a text. A term has no value, so that a function which asks for one is refused, with the line that did.
"""

from __future__ import annotations

import dis
import inspect
import linecache
import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import Any, NoReturn, Protocol

import torch

from .._words import cut, did_you_mean, either, shown
from ..errors import InvalidArgumentError

Names = Mapping[str, "Term"]

# How tightly the outermost operation of a text binds.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)


class Refused(Exception):
    """A sentence about what a function does with a term."""


def _method(name: str) -> Callable[..., Term]:
    if name not in _METHODS:
        raise Refused(f"`{name}` has no counterpart in a text{did_you_mean(name, _METHODS)} (docs/expressions.md)")
    return _METHODS[name]


def _operation(name: str, *, swapped: bool = False) -> Callable[..., Term]:
    return lambda *sides: _method(name)(*(reversed(sides) if swapped else sides))


class Term:
    """A number or a condition that a text says, such as ``row - col`` or ``col <= row``."""

    def __init__(self, text: str, binding: int = _ATOM, *, is_condition: bool = False) -> None:
        self._text = text
        self._binding = binding
        self._is_condition = is_condition

    def __repr__(self) -> str:
        return self._text

    def _used(self) -> Term:
        """The term as an operation takes it."""
        return self

    def __bool__(self) -> NoReturn:
        raise Refused(
            f"`{self._text}` has no value while the function is traced; `if`, `and`, `or`, `not`, `min`, `max` and "
            "comparisons in a row ask for one: write `torch.where`, `&`, `|`, `~`, `torch.minimum`, `torch.maximum` "
            "and one comparison in parentheses at a time"
        )

    def _has_no_value(self) -> NoReturn:
        raise Refused(f"`{self._text}` has no value while the function is traced")

    __int__ = __float__ = __index__ = __len__ = __iter__ = _has_no_value
    __add__, __radd__ = _operation("add"), _operation("add", swapped=True)
    __sub__, __rsub__ = _operation("sub"), _operation("sub", swapped=True)
    __mul__, __rmul__ = _operation("mul"), _operation("mul", swapped=True)
    __truediv__, __rtruediv__ = _operation("div"), _operation("div", swapped=True)
    __floordiv__, __rfloordiv__ = _operation("floor_divide"), _operation("floor_divide", swapped=True)
    __mod__, __rmod__ = _operation("remainder"), _operation("remainder", swapped=True)
    __pow__, __rpow__ = _operation("pow"), _operation("pow", swapped=True)
    __and__, __rand__ = _operation("logical_and"), _operation("logical_and", swapped=True)
    __or__, __ror__ = _operation("logical_or"), _operation("logical_or", swapped=True)
    __lt__, __le__, __gt__, __ge__ = _operation("lt"), _operation("le"), _operation("gt"), _operation("ge")
    __eq__, __ne__ = _operation("eq"), _operation("ne")  # type: ignore[assignment]
    __xor__, __lshift__, __rshift__, __matmul__ = (_operation(sign) for sign in ("^", "<<", ">>", "@"))
    __neg__, __abs__, __invert__ = _operation("neg"), _operation("abs"), _operation("logical_not")

    def __pos__(self) -> Term:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        method = _method(name)
        return lambda *args, **kwargs: _call(method, (self, *args), kwargs)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Term:
        name = getattr(function, "__name__", str(function))
        if name == "__getitem__":
            return reading(args[0])[args[1]]
        return _call(_method(name), args, dict(kwargs or {}))


class Unavailable(Term):
    """A name that functions of FlexAttention have, and texts do not."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name)
        self._why = why

    def _used(self) -> NoReturn:
        raise Refused(f"`{self}` is not there: {self._why}")


class Reader(Protocol):
    def reading(self, value: torch.Tensor | Operand) -> Term | None: ...


_reader: ContextVar[Reader | None] = ContextVar("reader", default=None)  # of the function that is traced


def reading(value: torch.Tensor | Operand) -> Any:
    """The term of a tensor that a function reads."""
    if (reader := _reader.get()) is None:
        raise Refused("it reads a tensor at a place that the function computes, which only a score can")
    return reader.reading(value)


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor, and the way in which a score reads it."""

    kind: str  # "": how the score reads it says that
    tensor: torch.Tensor

    def __getitem__(self, index: Any) -> Term:
        return reading(self)[index]


def _term(value: Any) -> Term:
    if isinstance(value, Term):
        return value._used()
    is_read = isinstance(value, Operand) or (isinstance(value, torch.Tensor) and _reader.get())
    if is_read and (term := reading(value)) is not None:
        return term._used()
    if isinstance(value, torch.Tensor):
        if value.dim() != 0 or value.requires_grad or value.device.type == "meta":
            raise Refused(
                f"it reads a tensor of shape {tuple(value.shape)}; a text has numbers: Python's, or those of tensors "
                "without dimensions and without a gradient"
            )
        value = value.item()
    if isinstance(value, bool):
        return Term("true" if value else "false", is_condition=True)
    if isinstance(value, int):
        return Term(str(value), _ATOM if value >= 0 else _SIGN)
    if isinstance(value, float) and math.isfinite(value):
        return Term(repr(value), _ATOM if math.copysign(1, value) > 0 else _SIGN)
    raise Refused(f"it computes with {shown(value)}; a text has finite numbers and conditions")


def index_of(value: Any, of: str) -> str:
    return _kind(value, False, of)._text


def _kind(value: Any, is_condition: bool, of: str) -> Term:
    term = _term(value)
    if term._is_condition != is_condition:
        wanted, found = ("conditions", "a number") if is_condition else ("numbers", "a condition")
        hint = "; `&` and `|` bind before comparisons, so put these in parentheses" if is_condition else ""
        raise Refused(f"{of} takes {wanted}, and `{term}` is {found}{hint}")
    return term


def _bound(term: Term, binding: int) -> str:
    return term._text if term._binding >= binding else f"({term._text})"


def _binary(sign: str, binding: int) -> Callable[..., Term]:
    takes_conditions = binding in (_OR, _AND)

    def combine(left: Any, right: Any) -> Term:
        one, other = (_kind(side, takes_conditions, f"`{sign}`") for side in (left, right))
        # Comparisons in a row would be another condition. Other operations begin on the left.
        first = _bound(one, binding + 1 if binding == _COMPARISON else binding)
        return Term(f"{first} {sign} {_bound(other, binding + 1)}", binding, is_condition=binding <= _COMPARISON)

    return combine


def _negation(value: Any) -> Term:
    return Term(f"not {_bound(_kind(value, True, '`not`'), _NOT)}", _NOT, is_condition=True)


def _minus(value: Any) -> Term:
    return Term(f"-{_bound(_kind(value, False, '`-`'), _SIGN)}", _SIGN)


def _function(name: str, count: int = 1) -> Callable[..., Term]:
    def call(*args: Any) -> Term:
        if len(args) != count:
            raise Refused(f"`{name}` is given {len(args)} arguments; it takes {count}")
        return Term(f"{name}({', '.join(_kind(value, False, f'`{name}`')._text for value in args)})")

    return call


def _where(condition: Any, one: Any, other: Any) -> Term:
    chosen = [_term(one), _term(other)]
    if chosen[0]._is_condition != chosen[1]._is_condition:
        raise Refused(f"`where` chooses between `{chosen[0]}` and `{chosen[1]}`; both must be numbers, or conditions")
    texts = ", ".join(term._text for term in (_kind(condition, True, "`where`"), *chosen))
    return Term(f"where({texts})", is_condition=chosen[0]._is_condition)


def _clamp(value: Any, min: Any = None, max: Any = None) -> Term:
    if min is None and max is None:
        raise Refused("`clamp` has neither a least nor a largest value")
    if min is None or max is None:
        return _function("max" if max is None else "min", 2)(value, min if max is None else max)
    return _function("clamp", 3)(value, min, max)


def _leaky_relu(value: Any, negative_slope: float = 0.01, inplace: bool = False) -> Term:
    return _function("leaky_relu", 2)(value, negative_slope)


def _gelu(value: Any, approximate: str = "none") -> Term:
    if approximate != "none":
        raise Refused(f"`gelu` is approximated by {shown(approximate)}; a text has the exact one")
    return _function("gelu")(value)


def _divide(value: Any, divisor: Any, rounding_mode: str | None = None) -> Term:
    if rounding_mode not in (None, "floor"):
        raise Refused(f"`div` rounds by {shown(rounding_mode)}; allowed are None and 'floor'")
    return _binary("//" if rounding_mode else "/", _PRODUCT)(value, divisor)


def _in_place(name: str) -> Callable[..., Term]:
    return lambda value, inplace=False: _function(name)(value)


_COMPARISONS = {"eq": "==", "ge": ">=", "gt": ">", "le": "<=", "lt": "<", "ne": "!="}
_OF_ONE = ("abs", "cos", "exp", "floor", "int", "log", "log2", "sigmoid", "sin", "sqrt", "tanh")

# By the name that PyTorch has for a function, and of an operator for what it calls.
_METHODS: dict[str, Callable[..., Term]] = {
    **{name: _function(name) for name in _OF_ONE},
    **{name: _in_place(name) for name in ("hardswish", "relu", "silu")},
    **{name: _binary(sign, _COMPARISON) for name, sign in _COMPARISONS.items()},
    **dict.fromkeys(("clamp", "clip"), _clamp),
    **dict.fromkeys(("div", "true_divide"), _divide),
    **dict.fromkeys(("bitwise_and", "logical_and"), _binary("and", _AND)),
    **dict.fromkeys(("bitwise_or", "logical_or"), _binary("or", _OR)),
    **dict.fromkeys(("bitwise_not", "logical_not"), _negation),
    "absolute": _function("abs"),
    "add": _binary("+", _SUM),
    "float": lambda value: _binary("*", _PRODUCT)(1.0, value),
    "floor_divide": _binary("//", _PRODUCT),
    "gelu": _gelu,
    "leaky_relu": _leaky_relu,
    "long": _function("int"),
    "maximum": _function("max", 2),
    "minimum": _function("min", 2),
    "mul": _binary("*", _PRODUCT),
    "neg": _minus,
    "pow": _function("pow", 2),
    "remainder": _binary("%", _PRODUCT),
    "sub": _binary("-", _SUM),
    "where": _where,
}


def _call(function: Callable[..., Term], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Term:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise Refused(f"a call has arguments that a text has no place for: {error}") from None
    return function(*args, **kwargs)


def _line_of(function: Callable[..., Any], trace: TracebackType | None) -> str:
    """The last line of the function's file that was at work, as ``, line 3 of model.py (`if row > 3:`)``."""
    code = getattr(function, "__code__", None)
    found = None
    while code is not None and trace is not None:
        if trace.tb_frame.f_code.co_filename == code.co_filename:
            found = trace
        trace = trace.tb_next
    if found is None:
        return ""
    source = linecache.getline(found.tb_frame.f_code.co_filename, found.tb_lineno).strip()
    file = found.tb_frame.f_code.co_filename.rsplit("/", 1)[-1]
    return f", line {found.tb_lineno} of {file}" + (f" (`{cut(source)}`)" if source else "")


def _given_by_name(what: str, function: Callable[..., Any], by_place: Sequence[Term], known: Names) -> Names:
    """Terms that a function asks for besides its first arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{what} is {shown(function)}; it must be a text or a function of Python") from None
    places = 0
    given = {}
    for one in signature.parameters.values():
        places += one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        is_further = one.kind is one.KEYWORD_ONLY or places > len(by_place)
        if is_further and one.default is one.empty and one.name in known:
            given[one.name] = known[one.name]
    try:
        signature.bind(*by_place, **given)
    except TypeError:
        taken = ", ".join(map(repr, by_place))
        raise InvalidArgumentError(
            f"{what} is a function of {signature}; it is called with ({taken}), and with {either(list(known))} by name"
        ) from None
    return given


def reads_nothing_else(function: FunctionType) -> bool:
    """Whether the text of a function without variables of its own follows from its code: its globals are modules."""
    codes, names = [function.__code__], set()
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        names |= {str(of.argval) for of in dis.get_instructions(code) if of.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    read = [function.__globals__[name] for name in names & function.__globals__.keys()]
    return all(isinstance(of, ModuleType) and of.__name__.split(".")[0] in ("torch", "math") for of in read)


def text_of(
    what: str,
    function: Callable[..., Any],
    by_place: Sequence[Term],
    by_name: Names,
    *,
    is_condition: bool,
    reader: Reader | None = None,
) -> str:
    """The text of a function.

    Args:
        what: the argument that the function is, for sentences.
        by_place: what the function is called with.
        by_name: what it may ask for besides, by the names of its further parameters.
        reader: makes terms of tensors; None: the function reads none.
    """
    given = _given_by_name(what, function, by_place, by_name)
    before = _reader.set(reader)
    try:
        result = _term(function(*by_place, **given))
        if result._is_condition != is_condition:
            raise Refused(f"it returns `{result}`, which is no {'condition' if is_condition else 'number'}")
    except Refused as refused:
        line = _line_of(function, refused.__traceback__)
        name = getattr(function, "__name__", "a function")
        raise InvalidArgumentError(f"{what} is {name}{line}: {refused}") from None
    finally:
        _reader.reset(before)
    return result._text
