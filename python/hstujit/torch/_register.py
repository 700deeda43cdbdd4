"""Every operator of the library as ``torch.ops.hstujit.*``: schema, kernels, fake implementation, autograd, autocast.

All of it follows from the interface of each operator, as the functions for arrays do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._functions import USUAL
from .._interface import Interface, Parameter, interface, interfaces
from ..errors import UnsupportedError
from ._launch import Launcher

NAMESPACE = "hstujit"
_TYPES = {"tensor": "Tensor", "float": "float", "int": "SymInt"}
_PARAMETER_TYPES = {"bool": "bool", "int": "int", "str": "str"}
# Inputs whose gradient is that of the result, which backward does not return.
_PASSED_ON = {("jagged_dense_broadcast_add", "jagged"): "dout"}

library = torch.library.Library(NAMESPACE, "DEF")


def _positional(described: Interface) -> list[tuple[str, str, Any]]:
    """Name, schema type and default (... where there is none) in the order of the function for arrays."""
    required: list[tuple[str, str, Any]] = []
    tensors: list[tuple[str, str, Any]] = []
    numbers: list[tuple[str, str, Any]] = []
    for argument in described.inputs:
        type_ = _TYPES[argument.kind]
        if argument.name in described.optional:
            (tensors if argument.is_tensor else numbers).append((argument.name, type_ + "?", None))
        elif argument.name in USUAL:
            numbers.append((argument.name, type_, USUAL[argument.name]))
        else:
            required.append((argument.name, type_, ...))
    return [*required, *tensors, *numbers]


def _keywords(described: Interface) -> list[tuple[str, str, Any]]:
    parameters = [(p.name, _PARAMETER_TYPES[p.type], _default(p)) for p in described.parameters]
    return parameters + [(keyword, "SymInt?", None) for _, keyword in described.rows]


def _default(parameter: Parameter) -> Any:
    return ... if parameter.default is None else parameter.default


def schema_of(described: Interface) -> str:
    def text(name: str, type_: str, default: Any) -> str:
        if default is ...:
            return f"{type_} {name}"
        return f'{type_} {name}="{default}"' if type_ == "str" else f"{type_} {name}={default}"

    arguments = [text(*entry) for entry in _positional(described)]
    if keywords := _keywords(described):
        arguments += ["*", *(text(*entry) for entry in keywords)]
    results = ", ".join(["Tensor"] * len(described.outputs))
    result = results if len(described.outputs) == 1 else f"({results})"
    return f"{described.name}({', '.join(arguments)}) -> {result}"


def _function(described: Interface, body: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """A function with the arguments of the schema, which sorts them into inputs, parameters and rows."""

    def text(name: str, type_: str, default: Any) -> str:
        return name if default is ... else f"{name}={default!r}"

    arguments = [text(*entry) for entry in _positional(described)]
    if keywords := _keywords(described):
        arguments += ["*", *(text(*entry) for entry in keywords)]
    groups = (
        [argument.name for argument in described.inputs],
        [parameter.name for parameter in described.parameters],
        [keyword for _, keyword in described.rows],
    )
    tuples = ", ".join("(" + "".join(name + ", " for name in names) + ")" for names in groups)
    source = f"def {described.name}({', '.join(arguments)}):\n    return body({tuples})\n"
    scope: dict[str, Any] = {"body": body}
    exec(source, scope)  # names come from the library, which checks them
    return scope[described.name]


def _fake(launcher: Launcher) -> Callable[..., Any]:
    def body(inputs: Any, parameters: Any, rows: Any) -> Any:
        plan = launcher.plan(inputs, parameters)
        first = inputs[launcher.first]

        def read_rows(name: str) -> Any:
            return torch.library.get_ctx().new_dynamic_size()

        outputs = launcher.allocate(plan, inputs, rows, first.device, read_rows)
        return launcher.all_outputs(plan, outputs, first.device)

    return body


class _Autograd:
    """The derivative: the backward direction, whose arguments are found by name."""

    def __init__(self, forward: Launcher, backward: Launcher) -> None:
        self.forward, self.backward = forward, backward
        self.positional = [name for name, _, _ in _positional(forward.interface)]
        self.saved = [name for name in self.positional if name in backward.positions and self.is_tensor(name)]
        self.gradients = {"d" + argument.name: index for index, argument in enumerate(forward.interface.outputs)}
        self.order = [(name, default) for name, _, default in _positional(backward.interface)]
        self.op = getattr(getattr(torch.ops, NAMESPACE), backward.interface.name).default

    def is_tensor(self, name: str) -> bool:
        return self.forward.is_tensor[self.forward.positions[name]]

    def setup_context(
        self, ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any
    ) -> None:
        given = dict(zip(self.positional, inputs))
        given = {**{name: default for name, _, default in _positional(self.forward.interface)}, **given}
        ctx.passed = self.positional[: len(inputs)]  # arguments behind them have their defaults
        ctx.save_for_backward(*(given[name] for name in self.saved))
        ctx.numbers = {name: value for name, value in given.items() if not self.is_tensor(name)}
        chosen = {**{p.name: p.default for p in self.forward.interface.parameters}, **keyword_only_inputs}
        ordered = tuple(given[argument.name] for argument in self.forward.interface.inputs)
        plan = self.forward.plan(ordered, tuple(chosen[name] for name in self.forward.parameter_names))
        ctx.parameters = {**chosen, **plan.parameters}
        ctx.rows = self.sizes_of(plan, ordered, output)

    def sizes_of(self, plan: Any, inputs: tuple[Any, ...], output: Any) -> dict[str, Any]:
        """Rows of gradients that backward's inputs do not tell: those of forward's inputs, of the same symbol."""
        sizes: dict[str, Any] = {}
        for symbol, keyword in self.backward.interface.rows:
            for argument in plan.signature.inputs:
                for axis, size in enumerate(argument.shape):
                    if size.symbols == (symbol,):
                        sizes.setdefault(keyword, inputs[self.forward.positions[argument.name]].shape[axis])
        return sizes

    def backward_of(self, ctx: Any, *grads: Any) -> Any:
        given = dict(zip(self.saved, ctx.saved_tensors), **ctx.numbers)
        for name, index in self.gradients.items():
            given[name] = _dense(grads[index])
        needed = dict.fromkeys(self.positional, False) | dict(zip(ctx.passed, ctx.needs_input_grad))
        parameters = {}
        for parameter in self.backward.interface.parameters:
            value = ctx.parameters.get(parameter.name, parameter.default)
            if parameter.name[0] == "d" and parameter.name[1:] in needed:
                value = value and needed[parameter.name[1:]]
            parameters[parameter.name] = value
        if ctx.parameters.get("left_only"):
            raise UnsupportedError(f"{self.forward.interface.op} has no derivative with left_only")
        results = self.op(*(given[name] for name, _ in self.order), **parameters, **ctx.rows)
        outputs = [argument.name for argument in self.backward.interface.outputs]
        found = dict(zip(outputs, results if len(outputs) > 1 else (results,)))
        return tuple(self.gradient_of(name, needed[name], found, given) for name in ctx.passed)

    def gradient_of(self, name: str, needed: bool, found: dict[str, Any], given: dict[str, Any]) -> Any:
        if not needed:
            return None
        if (passed := _PASSED_ON.get((self.forward.interface.op, name))) is not None:
            return given[passed]
        return found.get("d" + name)


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    """Gradients of sums are expanded numbers; a kernel wants rows."""
    return gradient if gradient.stride(-1) == 1 or gradient.size(-1) == 1 else gradient.contiguous()


def _no_derivative(what: str) -> Callable[..., Any]:
    def backward(ctx: Any, *grads: Any) -> Any:
        raise UnsupportedError(what)

    return backward


def _autocast(described: Interface, op: Any, key: str) -> Callable[..., Any]:
    """Operators with matrix products compute in the data type of autocast, others in the widest one of their inputs."""
    names = dict(described.dtypes).get("dtype", ())
    weights = dict(described.dtypes).get("weight_dtype", ())
    lowers = any(parameter.name == "precision" for parameter in described.parameters)
    device = "cuda" if key == "AutocastCUDA" else "cpu"
    excluded = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    indices = {argument.name: index for index, argument in enumerate(described.inputs)}
    positional = [name for name, _, _ in _positional(described)]

    def body(inputs: Any, parameters: Any, rows: Any) -> Any:
        values = dict(zip(indices, inputs))
        floats = [values[name] for name in names if values[name] is not None and values[name].is_floating_point()]
        if floats:
            target = torch.get_autocast_dtype(device) if lowers else _widest(floats)
            for name in names:
                values[name] = _cast(values[name], target)
            for name in weights:
                if values[name] is not None and values[name].dtype != torch.float32:
                    values[name] = _cast(values[name], target)
        keywords = dict(zip((p.name for p in described.parameters), parameters))
        keywords.update(zip((keyword for _, keyword in described.rows), rows))
        with torch._C._ExcludeDispatchKeyGuard(excluded):
            return op(*(values[name] for name in positional), **keywords)

    return body


def _cast(tensor: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    return tensor if tensor is None or not tensor.is_floating_point() else tensor.to(dtype)


def _widest(tensors: list[torch.Tensor]) -> torch.dtype:
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype


def _register(described: Interface) -> Launcher:
    launcher = Launcher(described)
    library.define(schema_of(described), tags=(torch.Tag.pt2_compliant_tag,))
    kernel = _function(described, launcher.run)
    for key in ("CPU", "CUDA"):
        library.impl(described.name, kernel, key)
    qualified = f"{NAMESPACE}::{described.name}"
    torch.library.register_fake(qualified, _function(described, _fake(launcher)), lib=library)
    op = getattr(getattr(torch.ops, NAMESPACE), described.name).default
    for key in ("AutocastCPU", "AutocastCUDA"):
        library.impl(described.name, _function(described, _autocast(described, op, key)), key)
    return launcher


def register_all() -> None:
    launchers = {name: _register(interface(*where)) for name, where in interfaces().items()}
    for name, launcher in launchers.items():
        qualified = f"{NAMESPACE}::{name}"
        backward = launchers.get(launcher.interface.op + "_backward")
        if launcher.interface.direction == "backward":
            derivative = _no_derivative(f"{name} has no derivative: second derivatives are not there")
            torch.library.register_autograd(qualified, derivative, lib=library)
        elif backward is None:
            derivative = _no_derivative(f"{name} has no derivative; call it in torch.no_grad()")
            torch.library.register_autograd(qualified, derivative, lib=library)
        else:
            rule = _Autograd(launcher, backward)
            torch.library.register_autograd(qualified, rule.backward_of, setup_context=_setup(rule), lib=library)


def _setup(rule: _Autograd) -> Callable[..., None]:
    """torch.library passes keyword-only arguments to operators that have some."""
    if _keywords(rule.forward.interface):
        return rule.setup_context

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        rule.setup_context(ctx, inputs, {}, output)

    return setup_context
