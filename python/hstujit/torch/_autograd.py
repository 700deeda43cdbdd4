"""Derivatives: the backward direction of an operator, as the library declares it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from .._calls import Call
from ..errors import UnsupportedError
from ._operands import declaration, declarations_of
from ._schema import DECLARED, by_name, defaults, operator_of, positional
from ._traced import Function as Operator

below_autograd: Callable[[], Any] = torch._C._AutoDispatchBelowAutograd
any_requires_grad: Callable[..., bool] = torch._C._any_requires_grad


class Derivative:
    """Forward saves its inputs, and those outputs that backward takes; what else backward needs it computes anew."""

    def __init__(self, forward: Operator, backward: Operator) -> None:
        self.forward, self.backward = forward, backward
        described, own = backward.interface, forward.interface
        self.compute = operator_of(described.name)
        self.names = positional(own.name)  # an input that is given has a gradient, if any, in this order
        self.taken, self.order = defaults(described.name), positional(described.name)
        self.outputs = [argument.name for argument in own.outputs]
        gradient_of = {of: name for name, of in described.gradients.items()}
        self.gradients = {name: gradient_of[name] for name in self.outputs if name in gradient_of}
        self.saved = [name for name in forward.tensors if name in self.order]
        self.saved_outputs = [name for name in self.outputs if name in self.order]
        self.numbers = [a.name for a in own.inputs if not a.is_tensor and a.name in self.order]
        self.results = {described.gradients[a.name]: i for i, a in enumerate(described.outputs)}
        self.usual = {p.name: defaults(own.name)[p.name] for p in own.parameters}
        # Parameters of backward: those that say whether a gradient is wanted, those that follow from which of forward's
        # inputs are given, such as bias, and the others, of forward or of its instance.
        self.wanted = {parameter: described.gradients[gradient] for gradient, parameter in described.wanted.items()}
        parameters = [p.name for p in described.parameters if p.name not in self.wanted]
        self.switches = {switch.name: switch.brings for switch in own.switches if switch.name in parameters}
        self.kept = [name for name in parameters if name in self.usual and name not in self.switches]
        self.derived = [name for name in parameters if name not in (*self.kept, *self.switches)]
        self.needs_call = bool(described.rows or self.saved_outputs or self.derived)
        # Inputs that a given output of forward replaces: no bias where there is what follows from it.
        replacing = [switch for switch in described.switches if switch.drops]
        self.unused = [(name, switch.drops) for switch in replacing for name in switch.brings - described.deciding]

    def save(self, ctx: Any, inputs: tuple[Any, ...], named: dict[str, Any], result: Any) -> None:
        values = by_name(self.forward.interface.name, inputs, named)
        results = dict(zip(self.outputs, result if isinstance(result, tuple) else (result,)))
        parameters = {name: values[name] for name in self.usual} if named else self.usual
        chosen = {name: parameters[name] for name in self.kept}
        chosen.update((name, any(values[a] is not None for a in brings)) for name, brings in self.switches.items())
        made: set[str] = set()
        if self.needs_call:
            call = self.forward.call(values)
            parameters = {**parameters, **call.parameters}
            chosen.update((name, call.parameters[name]) for name in self.derived if name in call.parameters)
            chosen.update(self.sizes_of(call, values))
            made = {argument.name for argument in call.signature.outputs}
        ctx.mark_non_differentiable(*[output for name, output in results.items() if name not in self.gradients])
        ctx.set_materialize_grads(False)  # so that nothing is launched where no gradient is defined
        kept = [results[name] if name in made else None for name in self.saved_outputs]
        ctx.save_for_backward(*[values[name] for name in self.saved], *kept, *(values.get(DECLARED) or ()))
        ctx.shapes = [(results[name].shape, results[name].dtype, results[name].device) for name in self.gradients]
        chosen = {name: value for name, value in chosen.items() if value != self.taken[name]}
        ctx.call = {name: values[name] for name in self.numbers}, parameters, chosen

    def sizes_of(self, call: Call, values: dict[str, Any]) -> dict[str, Any]:
        """Rows of gradients that backward's inputs do not tell: those of forward's inputs, of the same symbol."""
        sizes: dict[str, Any] = {}
        for symbol, keyword in self.backward.interface.rows:
            for argument in call.signature.inputs:
                for axis, size in enumerate(argument.shape):
                    if size.symbols == (symbol,):
                        sizes.setdefault(keyword, values[argument.name].shape[axis])
        return sizes

    def gradients_of(self, ctx: Any, needs: tuple[bool, ...], grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """A gradient for each input that was passed. ``needs`` says which are wanted, declared ones last."""
        given = dict(zip(self.outputs, grads))
        found = [given[name] for name in self.gradients]
        if all(gradient is None for gradient in found):
            return (None,) * len(needs)
        numbers, parameters, chosen = ctx.call
        saved = ctx.saved_tensors
        declared = saved[len(self.saved) + len(self.saved_outputs) :]
        places = len(needs) - len(declared)
        needs, wanted = needs[:places], needs[places:]
        for name in self.forward.interface.forward_only:
            if parameters[name] != self.usual[name]:
                raise UnsupportedError(f"{self.forward.interface.op} has no derivative with {name}={parameters[name]}")
        inputs = {**dict(zip((*self.saved, *self.saved_outputs), saved)), **numbers}
        for (output, name), gradient, (shape, dtype, device) in zip(self.gradients.items(), found, ctx.shapes):
            if gradient is None:  # not defined, beside others
                gradient = torch.zeros(shape, dtype=dtype, device=device)
            given[output] = inputs[name] = gradient
        for name, replacing in self.unused:
            if inputs[name] is not None and any(inputs[other] is not None for other in replacing):
                inputs[name] = None
        needed = dict(zip(self.names, needs))
        passed: dict[str, torch.Tensor] = {}
        for rule in self.backward.interface.passed_on:
            if rule.parameter and parameters.get(rule.parameter) != rule.value:
                continue
            factor: Any = 1
            if rule.factor:  # which backward does not take then
                factor, inputs[rule.factor] = inputs[rule.factor], None
            if needed.get(rule.argument):
                gradient = given[rule.output]
                passed[rule.argument] = gradient if factor == 1 else gradient * factor
        for parameter, argument in self.wanted.items():
            if inputs[argument] is not None:
                asked = parameters.get(parameter, self.taken[parameter])
                chosen = {**chosen, parameter: bool(asked and needed.get(argument))}
        if declared:
            text = with_gradients(chosen[self.backward.interface.declares], wanted)
            chosen = {**chosen, self.backward.interface.declares: text, DECLARED: [*declared]}
        results = self.compute(*[inputs.get(name, self.taken[name]) for name in self.order], **chosen)
        made = (results,) if isinstance(results, torch.Tensor) else results
        of_input = {name: made[place] for name, place in self.results.items()}
        of_input.update(passed)
        found = [of_input.get(name) if is_needed else None for name, is_needed in needed.items()]
        of_declared = iter(made[len(self.backward.interface.outputs) :])
        return *found, *(next(of_declared) if is_wanted else None for is_wanted in wanted)


@functools.cache
def with_gradients(text: str, wanted: tuple[bool, ...]) -> str:
    """Declarations of operands, of which those that are wanted have the word ``grad``."""
    declarations = []
    for (name, kind, words), is_wanted in zip(declarations_of(text), wanted):
        kept = [word for word in words if word != "grad"] + ["grad"] * is_wanted
        declarations.append(declaration(name, kind, kept))
    return ", ".join(declarations)


def _has_tangent(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and forward_ad.unpack_dual(value).tangent is not None


class Recorder:
    """Calls of an operator that PyTorch's autograd may record.

    torch.library.register_autograd does the same, but goes through the schema in every call to fill in defaults, which
    takes longer than all the rest.
    """

    def __init__(self, op: Any, rule: Derivative | str, of_thread: Any) -> None:
        """``rule`` may be a sentence: that there is no derivative. ``of_thread.records`` is True during a call."""
        self.op = op
        self.lists_outputs = str(op._schema.returns[0].type).startswith("List")

        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, run: Callable[..., Any], named: dict[str, Any], places: int, *given: Any) -> Any:
                inputs = given[:places]
                if len(given) > places:
                    named = {**named, DECLARED: [*given[places:]]}
                of_thread.records = True
                try:
                    with below_autograd():
                        result = run(*inputs, **named)
                finally:
                    of_thread.records = False
                if isinstance(result, list):  # autograd does not look into it
                    result = tuple(result)
                if not isinstance(rule, str):
                    rule.save(ctx, inputs, named, result)
                return result

            @staticmethod
            def backward(ctx: Any, *grads: torch.Tensor) -> Any:
                if isinstance(rule, str):
                    raise UnsupportedError(rule)
                return (None, None, None, *rule.gradients_of(ctx, ctx.needs_input_grad[3:], grads))

        self.apply: Callable[..., Any] = Function.apply

    def record(self, run: Callable[..., Any], named: dict[str, Any], inputs: tuple[Any, ...]) -> Any:
        """Autograd looks at each argument, and not into a list."""
        result = self.apply(run, named, len(inputs), *inputs, *(named.get(DECLARED) or ()))
        return [*result] if self.lists_outputs else result

    def kernel(self, keyset: Any, *inputs: Any, **named: Any) -> Any:
        """The kernel for the dispatcher's autograd keys."""
        run = functools.partial(self.op.redispatch, keyset & torch._C._after_autograd_keyset)
        tensors = (*inputs, *(named.get(DECLARED) or ()))
        if forward_ad._current_level >= 0 and any(map(_has_tangent, (*tensors, *named.values()))):
            raise UnsupportedError(f"{self.op} has no derivative in forward mode: jvp and dual tensors are not there")
        if not (torch.is_grad_enabled() and any_requires_grad(*tensors)):
            with below_autograd():
                return run(*inputs, **named)
        if torch._C._are_functorch_transforms_active():
            raise UnsupportedError(f"{self.op} has no derivative under a transform of torch.func: torch.autograd has")
        return self.record(run, named, inputs)
