"""Functions as operators of PyTorch, so that a graph of torch.fx has one node for a call.

Nothing is known of data types, ranks and sizes while ``torch.fx`` traces, and TorchScript compiles no function of this
package. So a call with proxies becomes a node of ``torch.ops.hstujit_functions.NAME``, and the function runs when the
graph does. Its kernel is composite: autograd, autocast and ``torch.export`` see the operators that it calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

NAMESPACE = "hstujit_functions"

library = torch.library.Library(NAMESPACE, "DEF")

# Annotations of what is two arguments of a schema.
_NUMBER_OR_TENSOR = ("int | torch.Tensor | None", "int | torch.Tensor")
_TENSOR = "_tensor"  # ends the name of the second one
_UNKNOWN = "Any"  # annotates what has no effect, such as the kernel of a public package


def has_proxies(values: tuple[Any, ...]) -> bool:
    """Whether torch.fx traces a call with these values. Without any it takes a third of a microsecond."""
    return torch._C._has_torch_function(values) and any(isinstance(value, torch.fx.Proxy) for value in values)


class Node:
    """What a call of a function is in a graph of torch.fx. The schema has keywords alone, which Python gets by name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        signature = inspect.signature(function)
        self.parameters = {p.name: p for p in signature.parameters.values() if p.annotation != _UNKNOWN}
        module = function.__module__.rpartition(".")[2]
        # The modules of the public packages have functions of the same names with other arguments.
        is_own = module not in ("generative_recommenders", "tzrec")
        name = function.__name__ if is_own else f"{module}_{function.__name__}"
        self.either = [p.name for p in self.parameters.values() if p.annotation in _NUMBER_OR_TENSOR]
        library.define(name + _schema(signature.replace(parameters=[*self.parameters.values()])))
        library.impl(name, self.kernel_of(function), "CompositeImplicitAutograd")
        self.packet = getattr(getattr(torch.ops, NAMESPACE), name)

    def kernel_of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def kernel(**arguments: Any) -> Any:
            for name in self.either:
                tensor = arguments.pop(name + _TENSOR, None)
                if tensor is not None:
                    arguments[name] = tensor
                elif arguments.get(name) is None:  # the function's own default
                    arguments.pop(name, None)
            return function(**arguments)

        return kernel if self.either else function

    def add(self, arguments: dict[str, Any]) -> torch.fx.Proxy:
        """The node of a call, whose numbers, flags and texts are of the types that the schema has."""
        given = {name: value for name, value in arguments.items() if self._is_given(name, value)}
        for name, value in given.items():
            # TorchScript takes an integer for no other number.
            if self.parameters[name].annotation.startswith("float") and isinstance(value, int):
                given[name] = float(value)
        for name in self.either:
            if isinstance(given.get(name), (torch.Tensor, torch.fx.Proxy)):
                given[name + _TENSOR] = given.pop(name)
        proxy = next(value for value in arguments.values() if isinstance(value, torch.fx.Proxy))
        return proxy.tracer.create_proxy("call_function", self.packet, (), given)

    def _is_given(self, name: str, value: Any) -> bool:
        parameter = self.parameters.get(name)
        return parameter is not None and (parameter.default is parameter.empty or value is not parameter.default)


def _schema(signature: inspect.Signature) -> str:
    keywords = []
    for parameter in signature.parameters.values():
        keywords.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
        if parameter.annotation in _NUMBER_OR_TENSOR:
            keywords[-1] = keywords[-1].replace(annotation="int | None", default=None)
            keywords.append(keywords[-1].replace(name=parameter.name + _TENSOR, annotation="torch.Tensor | None"))

    def described() -> None: ...

    described.__signature__ = inspect.Signature(keywords, return_annotation=None)  # type: ignore[attr-defined]
    arguments = torch.library.infer_schema(described, mutates_args=()).removesuffix("()")
    results: str = signature.return_annotation  # of which PyTorch infers none that may be None
    for word, other in (("torch.", ""), (" | None", "?"), ("tuple[", "("), ("]", ")")):
        results = results.replace(word, other)
    return arguments + results
