"""What ``torch.ops.hstujit.NAME(...)`` does before PyTorch's dispatcher.

The dispatcher takes longer to read the arguments of a call than all the rest takes. So a call that nothing but an
operator's kernels has a say in does not go there (``_direct.py``).

A kernel for the dispatcher's autograd keys costs a call twice: PyTorch's stable C++ interface cannot say whether a
tensor requires a gradient, so that kernel is in Python, and arguments go to Python and back. Here it is known already
whether a call is recorded, and it goes to the kernels in C++ at once, by an operator of its own whose autograd keys
fall through. Wherever anything but autograd and autocast may have a say, a mode, a transform, a tensor of another
class, the dispatcher decides as for every operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad as _forward_ad

from ..errors import Error, InvalidArgumentError
from ._direct import RECORDED

_has_torch_function = torch._C._has_torch_function
_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
_transforms: Callable[[], bool] = torch._C._are_functorch_transforms_active
_is_grad_enabled = torch.is_grad_enabled
_any_requires_grad: Callable[..., bool] = torch._C._any_requires_grad
_is_autocast: Callable[[], bool] = torch._C._is_any_autocast_enabled
_tracing: Callable[[], Any] = torch._C._get_tracing_state

Raised = Callable[[RuntimeError], "BaseException | None"]


def _call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    try:
        if self._hstujit_direct is not None:
            result = self._hstujit_direct(*args, **kwargs)
            if result is RECORDED:
                return self._hstujit_recorded(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if kwargs and not self._hstujit_flags.isdisjoint(kwargs):
            _check_flags(self._hstujit_flags, kwargs)
        tensors = (*args, *kwargs.values()) if kwargs else args
        if _has_torch_function(tensors) or _modes() or _transforms() or _tracing() or _forward_ad._current_level >= 0:
            return self._op(*args, **kwargs)
        if not (_is_grad_enabled() and _any_requires_grad(*tensors)):
            return self._hstujit_below(*args, **kwargs)
        return (self._op if _is_autocast() else self._hstujit_recorded)(*args, **kwargs)
    except Error:
        raise
    except RuntimeError as error:
        raised = self._hstujit_raised_as(error)
        if raised is not None:
            raise raised from None
    return self._op(*args, **kwargs)  # which says what PyTorch does not like, of this operator


def _check_flags(flags: frozenset[str], kwargs: dict[str, Any]) -> None:
    """PyTorch takes None for False, also where the default is True."""
    for name, value in kwargs.items():
        if value is None and name in flags:
            raise InvalidArgumentError(f"{name} is None; it must be True or False")


class Packet(torch._ops.OpOverloadPacket):
    __call__ = _call


class Overload(torch._ops.OpOverload):
    __call__ = _call


def install(
    packet: Any,
    direct: Callable[..., Any] | None,
    below: Callable[..., Any],
    recorded: Callable[..., Any],
    raised_as: Raised,
) -> None:
    """
    Args:
        direct: the operator without the dispatcher, or what returns NotImplemented.
        below: the operator below autograd.
        recorded: the operator with a node of the graph.
        raised_as: the exception of this package behind one of PyTorch.
    """
    flags = frozenset(argument.name for argument in packet.default._schema.arguments if str(argument.type) == "bool")
    for op, kind in ((packet.default, Overload), (packet, Packet)):
        op._hstujit_flags = flags
        op._hstujit_direct, op._hstujit_below = direct, below
        op._hstujit_recorded, op._hstujit_raised_as = recorded, raised_as
        op.__class__ = kind
