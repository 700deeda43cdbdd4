"""What ``torch.ops.hstujit.NAME(...)`` does before PyTorch's dispatcher.

The dispatcher's reading of twenty arguments takes two of the five us of a call. So a call that nothing but an
operator's kernels has a say in does not go there (``_direct.py``), and Python calls the function in C at once.

A kernel for the dispatcher's autograd keys costs a call twice: PyTorch's stable C++ interface cannot say whether a
tensor requires a gradient, so that kernel is in Python, and arguments go to Python and back. Here it is known already
whether a call is recorded, and it goes to the kernels in C++ at once, by an operator of its own whose autograd keys
fall through. Wherever anything but autograd and autocast may have a say, a mode, a transform, a tensor of another
class, the dispatcher decides as for every operator.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad as _forward_ad

from .._interface import Interface
from ..errors import Error, InvalidArgumentError
from ._guards import guards, overrides_of, profilers, registered_kernels
from ._schema import function_of

if TYPE_CHECKING:
    from ._autograd import Recorder

_has_torch_function = torch._C._has_torch_function
_is_grad_enabled = torch.is_grad_enabled
_any_requires_grad: Callable[..., bool] = torch._C._any_requires_grad
_is_autocast: Callable[[], bool] = torch._C._is_any_autocast_enabled
_GUARDS = (*profilers(), *guards())

Raised = Callable[[RuntimeError], "BaseException | None"]


class Front:
    """The way of an operator's calls that are not direct.

    Args:
        described: the operator's interface.
        packet: the operator, as ``torch.ops`` has it.
        below: the operator below autograd.
        raised_as: the exception of this package behind one of PyTorch.
        recorder: gives what records calls of the operator.
    """

    def __init__(
        self,
        described: Interface,
        packet: Any,
        below: Callable[..., Any],
        raised_as: Raised,
        recorder: Callable[[], Recorder],
    ) -> None:
        self.described, self.recorder = described, recorder
        self.packet, self.op, self.below, self.raised_as = packet, packet._op, below, raised_as
        arguments = packet.default._schema.arguments
        self.overrides = frozenset(overrides_of(described.name))
        self.flags = frozenset(argument.name for argument in arguments if str(argument.type) == "bool")

    @functools.cached_property
    def recorded(self) -> Callable[..., Any]:
        """The operator with a node of the graph."""
        return self.recorder().recorded

    def call(self, is_recorded: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Of calls of which it is known already, ``is_recorded``; the others may be, too."""
        try:
            if is_recorded:
                return self.recorded(*args, **kwargs)
            if kwargs and not self.flags.isdisjoint(kwargs):
                _check_flags(self.flags, kwargs)
            tensors = (*args, *kwargs.values()) if kwargs else args
            in_force = any(guard() for guard in _GUARDS) or _forward_ad._current_level >= 0
            if in_force or self.is_overridden() or _has_torch_function(tensors):
                return self.op(*args, **kwargs)
            if not (_is_grad_enabled() and _any_requires_grad(*tensors)):
                return self.below(*args, **kwargs)
            return (self.op if _is_autocast() else self.recorded)(*args, **kwargs)
        except Error:
            raise
        except RuntimeError as error:
            raised = self.raised_as(error)
            if raised is not None:
                raise raised from None
        return self.op(*args, **kwargs)  # which says what PyTorch does not like, of this operator

    def is_overridden(self) -> bool:
        """Whether torch.library has replaced a kernel: then the dispatcher decides as for every operator."""
        return not self.overrides.isdisjoint(registered_kernels)

    def computed(self, *inputs: Any, **named: Any) -> Any:
        """Calls the kernels below autograd, where the call is not direct."""
        if not self.is_overridden():
            return self.below(*inputs, **named)
        with torch._C._AutoDispatchBelowAutograd():
            return self.op(*inputs, **named)

    def otherwise(self, is_recorded: bool, failure: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Of what is no direct call, and of direct calls that have failed."""
        if failure is not None:
            error = RuntimeError(failure)
            raise self.raised_as(error) or error from None
        return self.call(is_recorded, args, kwargs)

    def signature(self, _: Any) -> inspect.Signature:
        return inspect.signature(function_of(self.described, lambda *_: None))

    def install(self, direct: Callable[..., Any] | None) -> None:
        """``direct`` is what calls take that can, and calls ``otherwise`` for the others."""

        def undecided(_: Any, /, *args: Any, **kwargs: Any) -> Any:
            return self.call(False, args, kwargs)

        for op in (self.packet.default, self.packet):
            kind = type(op)
            op._hstujit_front = self
            # A function in C is not bound to what it is called on, and has no signature.
            members = {"__call__": undecided if direct is None else direct, "__signature__": property(self.signature)}
            op.__class__ = type(kind.__name__, (kind,), members)


def _check_flags(flags: frozenset[str], kwargs: dict[str, Any]) -> None:
    """PyTorch takes None for False, also where the default is True."""
    for name, value in kwargs.items():
        if value is None and name in flags:
            raise InvalidArgumentError(f"{name} is None; it must be True or False")
