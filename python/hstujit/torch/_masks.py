"""Arguments of masks: counts, or a tensor of intervals, which may say semi-local attention.

TorchEasyRec says semi-local attention by such a tensor. The fields ``sla_k1`` and ``sla_k2`` say the same, and let the
compiler know which tiles are full and which are empty. So ``patch`` makes the package note on the tensor how it was
built, and attention takes the fields for as long as nothing was written to what it was built of.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ._arguments import contexts_of, integers_as, is_readable, like_offsets, targets_of

_NOTE = "_hstujit_semi_local"  # the attribute of a tensor of intervals


@dataclass
class _SemiLocal:
    """How a tensor of intervals was built."""

    sla_k1: int
    sla_k2: int
    seq_offsets: torch.Tensor
    num_targets: torch.Tensor | None
    versions: tuple[int, ...] = ()

    def versions_with(self, attn_func: torch.Tensor) -> tuple[int, ...]:
        """Counts of what was written to the tensors, which PyTorch has of all but those of inference mode."""
        given = [tensor for tensor in (attn_func, self.seq_offsets, self.num_targets) if tensor is not None]
        is_counted = is_readable(*given) and not any(tensor.is_inference() for tensor in given)
        return tuple(tensor._version for tensor in given) if is_counted else ()

    def holds(self, attn_func: torch.Tensor, seq_offsets: torch.Tensor) -> bool:
        """Whether the fields say what the tensor says of these sequences."""
        is_as_it_was = () != self.versions == self.versions_with(attn_func)
        return is_as_it_was and seq_offsets is self.seq_offsets and (self.sla_k1 > 0 or self.sla_k2 > 0)


def build_sla_func_tensor(
    nheads: int,
    sla_k1: int,
    sla_k2: int,
    seq_offsets: torch.Tensor,
    total_q: int,
    num_targets: torch.Tensor | None = None,
    contextual_seq_len: int = 0,
    device: torch.device | None = None,
) -> _SemiLocal:
    """Describes the tensor that the package's function with this name and these arguments builds."""
    return _SemiLocal(sla_k1, max(sla_k2, contextual_seq_len), seq_offsets, num_targets)


def noting(build: Callable[..., Any], count: Callable[[str], None]) -> Callable[..., Any]:
    """The package's ``build_sla_func_tensor``. It notes on a result how that was built, and counts its calls."""

    @functools.wraps(build)
    def call(*args: Any, **kwargs: Any) -> Any:
        attn_func = build(*args, **kwargs)
        if not torch.compiler.is_compiling():
            note = build_sla_func_tensor(*args, **kwargs)
            note.versions = note.versions_with(attn_func)
            setattr(attn_func, _NOTE, note)
            count("" if note.holds(attn_func, note.seq_offsets) else "intervals that stay a tensor")
        return attn_func

    return call


def masks_of(
    attn_func: torch.Tensor | None, targets: torch.Tensor | None, contexts: int | torch.Tensor, offsets: torch.Tensor
) -> dict[str, Any]:
    """The operator's arguments of these, of which ``attn_func`` replaces the others: it has what they say, too."""
    if attn_func is None:
        return {"num_targets": like_offsets(targets, offsets), **contexts_of(contexts, offsets)}
    note = getattr(attn_func, _NOTE, None) if is_readable(attn_func) else None
    if note is None or not note.holds(attn_func, offsets):
        return {"attn_func": integers_as("attn_func", attn_func, torch.int32)}
    targets = targets_of(note.num_targets, offsets, clamps=True)
    return {"causal": True, "sla_k1": note.sla_k1, "sla_k2": note.sla_k2, "num_targets": targets}
