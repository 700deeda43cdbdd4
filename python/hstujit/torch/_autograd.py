"""Derivatives: the backward direction of an operator, whose arguments are found by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..errors import UnsupportedError
from ._launch import Launcher, Plan
from ._schema import NAMESPACE, positional

# Inputs whose gradient is that of the result, which backward does not return.
_PASSED_ON = {("jagged_dense_broadcast_add", "jagged"): "dout"}


class Derivative:
    """Forward saves its inputs alone, and backward computes anew what it needs."""

    def __init__(self, forward: Launcher, backward: Launcher) -> None:
        self.forward, self.backward = forward, backward
        self.op = getattr(getattr(torch.ops, NAMESPACE), backward.interface.name).default
        self.defaults = {name: default for name, _, default in positional(forward.interface)}
        self.names = list(self.defaults)
        tensors = {name for name, index in forward.positions.items() if forward.is_tensor[index]}
        self.default_values = tuple(self.defaults.values())
        self.saved = [name for name in self.names if name in tensors and name in backward.positions]
        self.numbers = [name for name in self.names if name not in tensors]
        self.saved_at = [self.names.index(name) for name in self.saved]
        self.numbers_at = [self.names.index(name) for name in self.numbers]
        self.inputs = list(forward.positions)
        self.parameters = {parameter.name: parameter.default for parameter in forward.interface.parameters}
        # Backward has parameters, or rows, that follow from forward's inputs.
        derived = (p.name for p in backward.interface.parameters if not self.says_what_is_wanted(p.name))
        self.needs_plan = bool(backward.rows) or any(name not in self.parameters for name in derived)
        self.order = [name for name, _, _ in positional(backward.interface)]
        self.gradients = {"d" + argument.name: index for index, argument in enumerate(forward.interface.outputs)}
        self.results = [argument.name for argument in backward.interface.outputs]

    def save(self, ctx: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        ctx.passed = len(inputs)  # arguments behind them have their defaults
        given = inputs + self.default_values[len(inputs) :]
        ctx.save_for_backward(*[given[index] for index in self.saved_at])
        ctx.numbers = [given[index] for index in self.numbers_at]
        ctx.chosen = {**self.parameters, **named}
        ctx.rows = {}
        if self.needs_plan:
            values = dict(zip(self.names, given))
            ordered = tuple([values[name] for name in self.inputs])
            plan = self.forward.plan(ordered, tuple([ctx.chosen[name] for name in self.parameters]))
            ctx.chosen.update(plan.parameters)
            ctx.rows = self.sizes_of(plan, ordered)

    def says_what_is_wanted(self, parameter: str) -> bool:
        """Such as drab: whether the gradient of rab is."""
        return parameter[0] == "d" and parameter[1:] in self.defaults

    def sizes_of(self, plan: Plan, inputs: tuple[Any, ...]) -> dict[str, Any]:
        """Rows of gradients that backward's inputs do not tell: those of forward's inputs, of the same symbol."""
        sizes: dict[str, Any] = {}
        for symbol, keyword in self.backward.interface.rows:
            for argument in plan.signature.inputs:
                for axis, size in enumerate(argument.shape):
                    if size.symbols == (symbol,):
                        sizes.setdefault(keyword, inputs[self.forward.positions[argument.name]].shape[axis])
        return sizes

    def gradients_of(self, ctx: Any, needs: tuple[bool, ...], grads: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
        """A gradient for each input that was passed. ``needs`` says which are wanted."""
        if ctx.chosen.get("left_only"):
            raise UnsupportedError(f"{self.forward.interface.op} has no derivative with left_only")
        given = dict(zip(self.saved, ctx.saved_tensors))
        given.update(zip(self.numbers, ctx.numbers))
        given.update((name, _dense(grads[index])) for name, index in self.gradients.items())
        passed = self.names[: ctx.passed]
        needed = dict(zip(passed, needs))
        chosen = {}
        for parameter in self.backward.interface.parameters:
            value = ctx.chosen.get(parameter.name, parameter.default)
            if self.says_what_is_wanted(parameter.name):
                value = value and needed.get(parameter.name[1:], False)
            chosen[parameter.name] = value
        results = self.op(*[given[name] for name in self.order], **chosen, **ctx.rows)
        found = dict(zip(self.results, results if len(self.results) > 1 else (results,)))
        return tuple([self.gradient_of(name, found, given) if needed[name] else None for name in passed])

    def gradient_of(self, name: str, found: dict[str, Any], given: dict[str, Any]) -> Any:
        passed = _PASSED_ON.get((self.forward.interface.op, name))
        return found.get("d" + name) if passed is None else given[passed]


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    """Gradients of sums are expanded numbers; a kernel wants rows."""
    return gradient if gradient.stride(-1) == 1 or gradient.size(-1) == 1 else gradient.contiguous()


class NoDerivative:
    """Of an operator that has none: backward says so."""

    def __init__(self, what: str) -> None:
        self.what = what

    def save(self, ctx: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        pass

    def gradients_of(self, ctx: Any, needs: tuple[bool, ...], grads: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
        raise UnsupportedError(self.what)


def _any_requires_grad(*inputs: Any) -> bool:
    """That of torch._C, which PyTorch 2.6 has not."""
    return any(isinstance(value, torch.Tensor) and value.requires_grad for value in inputs)


def autograd_kernel(op: Any, rule: Derivative | NoDerivative, compute: Callable[..., Any]) -> Callable[..., Any]:
    """What the dispatcher calls for its autograd keys.

    torch.library.register_autograd does the same, but goes through the schema in every call to fill in defaults, which
    takes longer than all the rest. Where nothing but the kernel ``compute`` is left to be called, it is called at once:
    no mode of tracing, no transform, no functionalisation.
    """
    below = torch._C._AutoDispatchBelowAutograd
    any_requires_grad = getattr(torch._C, "_any_requires_grad", _any_requires_grad)
    keys = torch._C.DispatchKey
    behind = torch._C._after_autograd_keyset
    deciding = behind.remove(keys.ADInplaceOrView)  # which passes every call on
    kernels = (keys.CPU, keys.CUDA)

    known: dict[int, bool] = {}

    def run(keyset: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        bits = keyset.raw_repr()
        if bits not in known:
            known[bits] = (keyset & deciding).highestPriorityTypeId() in kernels
        if known[bits]:
            return compute(*inputs, **named)
        with below():
            return op.redispatch(keyset & behind, *inputs, **named)

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, keyset: Any, named: dict[str, Any], *inputs: Any) -> Any:
            result = run(keyset, inputs, named)
            rule.save(ctx, inputs, named)
            return result

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> Any:
            return (None, None, *rule.gradients_of(ctx, ctx.needs_input_grad[2:], grads))

    def kernel(keyset: Any, *inputs: Any, **named: Any) -> Any:
        if torch.is_grad_enabled() and any_requires_grad(*inputs):
            return Function.apply(keyset, named, *inputs)
        return run(keyset, inputs, named)

    return kernel
