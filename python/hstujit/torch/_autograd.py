"""Derivatives: the backward direction of an operator, as the library declares it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.autograd import forward_ad

from .._calls import Call
from .._interface import Interface
from ..errors import UnsupportedError
from ._in_place import alignments_of, readable
from ._schema import NAMESPACE, positional
from ._traced import Function as Operator


class Derivative:
    """Forward saves its inputs, and those outputs that backward takes; what else backward needs it computes anew."""

    def __init__(self, forward: Operator, backward: Operator) -> None:
        self.forward, self.backward = forward, backward
        self.op = getattr(getattr(torch.ops, NAMESPACE), backward.interface.name).default
        defaults = {name: default for name, _, default in positional(forward.interface)}
        self.names, self.defaults = list(defaults), tuple(defaults.values())
        tensors = {name for name, index in forward.positions.items() if forward.is_tensor[index]}
        outputs = [argument.name for argument in forward.interface.outputs]
        # Where backward's inputs are taken from: saved inputs and outputs, numbers, gradients of outputs, defaults of
        # the rest.
        saved = [name for name in self.names if name in tensors and name in backward.positions]
        self.saved_outputs = [(index, name) for index, name in enumerate(outputs) if name in backward.positions]
        numbers = [name for name in self.names if name not in tensors]
        gradient_of = {of: name for name, of in backward.interface.gradients.items()}
        self.differentiable = [index for index, name in enumerate(outputs) if name in gradient_of]
        self.others = [index for index in range(len(outputs)) if index not in self.differentiable]
        gradients = [gradient_of[outputs[index]] for index in self.differentiable]
        alignments = alignments_of(backward.interface)
        self.alignments = [alignments[name] for name in gradients]
        sources = [*saved, *(name for _, name in self.saved_outputs), *numbers, *gradients]
        rest = [(name, default) for name, _, default in positional(backward.interface) if name not in sources]
        self.rest = tuple(default for _, default in rest)
        sources += [name for name, _ in rest]
        self.saved = _picker(self.names.index(name) for name in saved)
        self.numbers = _picker(self.names.index(name) for name in numbers)
        order = [name for name, _, _ in positional(backward.interface)]
        self.order_names = order
        self.unused = list(self.find_unused(order))
        self.order = _picker(sources.index(name) for name in order)
        self.find_parameters(order)
        results = {argument.name: index for index, argument in enumerate(backward.interface.outputs)}
        self.results = [results.get(gradient_of.get(name, "")) for name in self.names]
        self.passed_on = [
            (passed, self.names.index(passed.argument), gradients.index(gradient_of[passed.output]))
            for passed in backward.interface.passed_on
        ]
        # What picks gradients for inputs, by which are wanted, passed on and scaled.
        self.choosers: dict[Any, Callable[[tuple[Any, ...]], tuple[Any, ...]]] = {}
        allowed = forward.interface.allowed
        self.with_derivative = [(name, allowed[name]["default"]) for name in forward.interface.forward_only]

    def find_unused(self, order: list[str]) -> Iterator[tuple[list[int], int]]:
        """Places of inputs that a given output of forward replaces: no bias where there is what follows from it."""
        interface = self.backward.interface
        for switch in interface.switches:
            for name in switch.brings - interface.deciding if switch.drops else ():
                yield [order.index(dropped) for dropped in switch.drops], order.index(name)

    def find_parameters(self, order: list[str]) -> None:
        """Which of forward's keywords backward has, and which of its own say whether a gradient is wanted."""
        self.parameters = {p.name: p.default for p in self.forward.interface.parameters}
        switches = {switch.name: switch for switch in self.forward.interface.switches}
        self.kept, self.wanted, self.always = set(), [], {}
        self.switches: list[tuple[str, tuple[int, ...], Any]] = []  # such as bias, which backward does not take
        derived = False
        described = self.backward.interface
        of = {parameter: described.gradients[gradient] for gradient, parameter in described.wanted.items()}
        for parameter in described.parameters:
            name = parameter.name
            if name in of:  # such as drab, where rab is given
                self.wanted.append((name, self.names.index(of[name]), order.index(of[name]), parameter.default))
            elif name in switches:
                brought = tuple(self.names.index(argument) for argument in switches[name].brings)
                self.switches.append((name, brought, parameter.default))
            else:
                self.kept.add(name)
                derived = derived or name not in self.parameters
                if self.parameters.get(name, parameter.default) != parameter.default:
                    self.always[name] = self.parameters[name]
        # Backward has other parameters, or rows, that follow from forward's inputs.
        self.needs_call = bool(self.backward.rows or self.saved_outputs) or derived

    def save(self, ctx: Any, inputs: tuple[Any, ...], named: dict[str, Any], result: Any) -> None:
        given = inputs + self.defaults[len(inputs) :]  # arguments behind those that are passed have their defaults
        kept: tuple[Any, ...] = ()
        derived: dict[str, Any] = {}
        for name, brought, default in self.switches:
            value = any(given[index] is not None for index in brought)
            if value != default:
                derived[name] = value
        if self.needs_call:
            values = dict(zip(self.names, given))
            ordered = tuple([values[name] for name in self.forward.positions])
            chosen = {**self.parameters, **named}
            call = self.forward.call(ordered, tuple([chosen[name] for name in self.parameters]))
            named = {**named, **call.parameters}
            derived.update(self.sizes_of(call, ordered))
            made = {argument.name for argument in call.signature.outputs}
            kept = tuple([result[index] if name in made else None for index, name in self.saved_outputs])
        if self.others:
            ctx.mark_non_differentiable(*[result[index] for index in self.others])
        ctx.set_materialize_grads(False)  # so that nothing is launched where no gradient is defined
        if len(self.differentiable) > 1:
            outputs = [result[index] for index in self.differentiable]
            ctx.made = [(output.shape, output.dtype, output.device) for output in outputs]
        ctx.save_for_backward(*self.saved(given), *kept)
        ctx.call = self.numbers(given), named, derived

    def sizes_of(self, call: Call, inputs: tuple[Any, ...]) -> dict[str, Any]:
        """Rows of gradients that backward's inputs do not tell: those of forward's inputs, of the same symbol."""
        sizes: dict[str, Any] = {}
        for symbol, keyword in self.backward.interface.rows:
            for argument in call.signature.inputs:
                for axis, size in enumerate(argument.shape):
                    if size.symbols == (symbol,):
                        sizes.setdefault(keyword, inputs[self.forward.positions[argument.name]].shape[axis])
        return sizes

    def gradients_of(self, ctx: Any, needs: tuple[bool, ...], grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """A gradient for each input that was passed. ``needs`` says which are wanted."""
        dense = self.dense(ctx, grads)
        if not dense:
            return (None,) * len(needs)
        numbers, named, derived = ctx.call
        if named:
            for name, value in self.with_derivative:
                if named.get(name, value) != value:
                    raise UnsupportedError(f"{self.forward.interface.op} has no derivative with {name}={named[name]}")
        inputs = self.order((*ctx.saved_tensors, *numbers, *dense, *self.rest))
        for replacing, place in self.unused:
            if inputs[place] is not None and any(inputs[other] is not None for other in replacing):
                inputs = (*inputs[:place], None, *inputs[place + 1 :])
        passed: list[tuple[int, torch.Tensor]] = []
        for rule, index, gradient in self.passed_on:
            if rule.parameter and named.get(rule.parameter) != rule.value:
                continue
            factor: Any = 1
            if rule.factor:  # which backward does not take then
                place = self.order_names.index(rule.factor)
                factor, inputs = inputs[place], (*inputs[:place], None, *inputs[place + 1 :])
            if needs[index]:
                passed.append((index, _times(dense[gradient], factor)))
        results = self.op(*inputs, **self.parameters_of(inputs, named, derived, needs))
        made = (results,) if isinstance(results, torch.Tensor) else tuple(results)
        indices = tuple([index for index, _ in passed])
        chooser = self.choosers.get((needs, indices))
        if chooser is None:
            chooser = self.choosers[needs, indices] = self.chooser_of(needs, indices, len(made))
        return chooser((None, *made, *[gradient for _, gradient in passed]))

    def dense(self, ctx: Any, grads: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
        """Gradients of outputs as backward reads them, none where autograd defines none of them.

        One that is not defined, beside others, is 0. One of a sum is a number that is expanded, and one of a slice
        begins at any address.
        """
        found = [grads[index] for index in self.differentiable]
        if all(gradient is None for gradient in found):
            return ()
        if any(gradient is None for gradient in found):
            found = [_zeros(*made) if gradient is None else gradient for gradient, made in zip(found, ctx.made)]
        return tuple([readable(gradient, alignment) for gradient, alignment in zip(found, self.alignments)])

    def parameters_of(
        self, inputs: tuple[Any, ...], named: dict[str, Any], derived: dict[str, Any], needs: tuple[bool, ...]
    ) -> dict[str, Any]:
        """Backward's keywords."""
        chosen = {**self.always, **derived}
        if named:
            chosen.update((name, value) for name, value in named.items() if name in self.kept)
        for name, index, place, default in self.wanted:
            if inputs[place] is not None:
                chosen[name] = bool(named.get(name, self.parameters.get(name, default)) and needs[index])
        return chosen

    def chooser_of(
        self, needs: tuple[bool, ...], passed: tuple[int, ...], made: int
    ) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
        """What picks a gradient for each input that was passed; those behind it need none.

        It picks from None, backward's results, and the gradients that are passed on to the inputs ``passed``.
        """
        places = [0 if result is None else 1 + result for result in self.results]
        for place, index in enumerate(passed):
            places[index] = 1 + made + place
        return _picker(place if is_needed else 0 for place, is_needed in zip(places, needs))


def _picker(indices: Iterable[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """A function that gives a tuple of the elements at these places."""
    places = tuple(indices)
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda values: tuple([values[place] for place in places])


def _times(gradient: torch.Tensor, factor: float) -> torch.Tensor:
    return gradient if factor == 1 else gradient * factor


def _zeros(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype, device=device)


class NoDerivative:
    """Of an operator that has none: backward says so."""

    def __init__(self, what: str) -> None:
        self.what = what

    def save(self, ctx: Any, inputs: tuple[Any, ...], named: dict[str, Any], result: Any) -> None:
        pass

    def gradients_of(self, ctx: Any, needs: tuple[bool, ...], grads: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
        raise UnsupportedError(self.what)


def _has_tangent(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and forward_ad.unpack_dual(value).tangent is not None


def _applied(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """Its ``apply``, for calls that no transform of torch.func sees: a microsecond less."""
    apply = super(torch.autograd.Function, function).apply  # type: ignore[misc]
    unwrapped = torch._C._functorch.unwrap_if_dead  # what a transform that is over has left

    def applied(*inputs: Any) -> Any:
        return apply(*[unwrapped(value) if isinstance(value, torch.Tensor) else value for value in inputs])

    return applied


class Recorder:
    """Calls of an operator that PyTorch's autograd may record.

    torch.library.register_autograd does the same, but goes through the schema in every call to fill in defaults, which
    takes longer than all the rest.

    Args:
        compute: the operator below autograd, where nothing but its kernels is left to be called.
    """

    def __init__(self, op: Any, rule: Derivative | NoDerivative, described: Interface, compute: Callable[..., Any]):
        self.op, self.compute = op, compute
        self.defaults = {name: default for name, _, default in positional(described)}
        self.names = list(self.defaults)

        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, run: Callable[..., Any], named: dict[str, Any], *inputs: Any) -> Any:
                result = run(*inputs, **named)
                rule.save(ctx, inputs, named, result)
                return result

            @staticmethod
            def backward(ctx: Any, *grads: torch.Tensor) -> Any:
                return (None, None, *rule.gradients_of(ctx, ctx.needs_input_grad[2:], grads))

        self.apply = _applied(Function)

    def recorded(self, *inputs: Any, **named: Any) -> Any:
        """The call as a node of the graph; what has to be looked at below autograd is looked at by ``compute``."""
        if named and not self.defaults.keys().isdisjoint(named):
            inputs, named = self.in_order(inputs, named)
        return self.apply(self.compute, named, *inputs)

    def in_order(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """With what stands behind the last one that was passed left to its default, and nothing else named."""
        last = max(index for index, name in enumerate(self.names) if name in named)
        rest = self.names[len(inputs) : last + 1]
        if missing := [name for name in rest if name not in named and self.defaults[name] is ...]:
            raise RuntimeError(f"{', '.join(missing)} is missing")  # the caller asks PyTorch, which says it, too
        ordered = (*inputs, *(named.get(name, self.defaults[name]) for name in rest))
        return ordered, {name: value for name, value in named.items() if name not in rest}

    def kernel(self) -> Callable[..., Any]:
        """What the dispatcher calls for its autograd keys.

        Where nothing but the operator's kernels is left to be called, ``compute`` is called at once: no mode of
        tracing, no transform, no functionalisation.
        """
        below = torch._C._AutoDispatchBelowAutograd
        any_requires_grad = torch._C._any_requires_grad
        keys = torch._C.DispatchKey
        behind = torch._C._after_autograd_keyset
        deciding = behind.remove(keys.ADInplaceOrView)  # which passes every call on
        kernels = (keys.CPU, keys.CUDA)
        are_transforms_active = torch._C._are_functorch_transforms_active
        known: dict[int, bool] = {}
        op, compute, apply = self.op, self.compute, self.apply

        def run_of(keyset: Any) -> Callable[..., Any]:
            bits = keyset.raw_repr()
            if bits not in known:
                known[bits] = (keyset & deciding).highestPriorityTypeId() in kernels
            return compute if known[bits] else lambda *inputs, **named: redispatch(keyset, inputs, named)

        def redispatch(keyset: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
            with below():
                return op.redispatch(keyset & behind, *inputs, **named)

        def kernel(keyset: Any, *inputs: Any, **named: Any) -> Any:
            run = run_of(keyset)
            if forward_ad._current_level >= 0 and any(map(_has_tangent, (*inputs, *named.values()))):
                raise UnsupportedError(f"{op} has no derivative in forward mode: jvp and dual tensors are not there")
            if torch.is_grad_enabled() and any_requires_grad(*inputs):
                if are_transforms_active():
                    raise UnsupportedError(
                        f"{op} has no derivative under a transform of torch.func: torch.autograd has"
                    )
                return apply(run, named, *inputs)
            return run(*inputs, **named)

        return kernel
