"""Prepares arguments for an operator."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from .._words import shown
from ..errors import InvalidArgumentError
from ._schema import dtype_name

Dropout = dict[str, float | int | torch.Tensor]

REALS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def is_cast(tensor: torch.Tensor) -> bool:
    """Whether autocast says which data type it gets."""
    return tensor.device.type in ("cpu", "cuda") and torch.is_autocast_enabled(tensor.device.type)


def fp32_precision() -> str:
    """The precision of products of fp32, as PyTorch's setting has it: "tf32" where that is allowed, else "ieee"."""
    return "tf32" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "ieee"


# Marks what torch.compiler.assume_constant_result marks, which imports torch._dynamo. A graph is traced anew where the
# setting is another one.
fp32_precision._dynamo_marked_constant = True  # type: ignore[attr-defined]


def like_offsets(counts: torch.Tensor | None, offsets: torch.Tensor, name: str = "num_targets") -> torch.Tensor | None:
    return None if counts is None else integers_as(name, counts, offsets.dtype)


def targets_of(counts: torch.Tensor | None, offsets: torch.Tensor, clamps: bool) -> torch.Tensor | None:
    """``num_targets``, with ``clamps`` no more of them than a sequence has rows.

    A GPU's kernels need no such limit, and a launch looks at it with ``HSTUJIT_CHECK=1`` alone, so there they stay.
    """
    targets = like_offsets(counts, offsets)
    if targets is None or not clamps or targets.device.type != "cpu":
        return targets
    rows = offsets.diff()
    return torch.minimum(targets, rows) if targets.shape == rows.shape else targets


def contexts_of(contexts: int | torch.Tensor, offsets: torch.Tensor) -> dict[str, Any]:
    """``contextual_seq_len`` as the operator takes it: a number for all sequences, or one for each, a tensor (B)."""
    if not isinstance(contexts, torch.Tensor):
        return {"contextual_seq_len": contexts}
    return {"num_contexts": like_offsets(contexts, offsets, "contextual_seq_len")}


def integers_as(name: str, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Integers as ``dtype``. What it has no room for becomes its largest or smallest one, which is as wrong."""
    if tensor.dtype == dtype:
        return tensor
    if tensor.dtype not in INTEGERS:
        raise InvalidArgumentError(f"{name} has dtype {dtype_name(tensor.dtype)}; it must be int32 or int64")
    if dtype not in (torch.int32, torch.int64) or tensor.dtype.itemsize <= dtype.itemsize:
        return tensor.to(dtype)
    limits = torch.iinfo(dtype)
    return tensor.clamp(limits.min, limits.max).to(dtype)


def is_readable(*tensors: torch.Tensor) -> bool:
    """Whether there are values, and nothing traces what is done with them."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or torch._C._len_torch_dispatch_stack():
        return False
    return all(type(tensor) is torch.Tensor and not tensor.is_meta for tensor in tensors)


def drawn_seed(like: torch.Tensor) -> torch.Tensor:
    """The seed of a dropout, (1) int64, which PyTorch's generator draws on the device of ``like``.

    A memory budget below 1 lets PyTorch draw again in backward. Inside a checkpoint it draws the same number again.
    """
    if torch.compiler.is_dynamo_compiling() and _draws_again():
        return checkpoint(_drawn, like, use_reentrant=False)
    return _drawn(like)


def _drawn(like: torch.Tensor) -> torch.Tensor:
    """A graph gets ``aten.random``: inductor replaces ``torch.randint`` by numbers that no checkpoint repeats."""
    memory = torch.empty(1, dtype=torch.int64, device=like.device)
    return torch.ops.aten.random(memory) if torch.compiler.is_compiling() else memory.random_()


def _draws_again() -> bool:
    from torch._functorch import config

    return config.activation_memory_budget < 1


# Marks what torch.compiler.assume_constant_result marks, which imports torch._dynamo. The budget is part of a graph.
_draws_again._dynamo_marked_constant = True  # type: ignore[attr-defined]


def weight_like(weight: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor | None:
    """Weights are fp32, or of the data type of x. What is none is the operator's to refuse."""
    if weight is None or weight.dtype == torch.float32 or not weight.is_floating_point():
        return weight
    return weight.to(x.dtype)


def flat_rows(x: torch.Tensor) -> torch.Tensor:
    """(..., D) as (L, D), also where D is 0, which ``reshape`` knows no L of."""
    if x.dim() == 2:
        return x
    return x.unsqueeze(0) if x.dim() == 1 else x.flatten(0, -2)


def is_integral(dtype: torch.dtype) -> bool:
    """Whether rows of it are moved as bytes: integers of any size, and bool."""
    return not (dtype.is_floating_point or dtype.is_complex)


def rows_to_move(values: torch.Tensor, name: str, like: torch.Tensor | None = None) -> torch.Tensor:
    """Rows as kernels move them: integers as fp16 of the value of each byte.

    A kernel may add 0 to what it moves, and take a number below the normal ones for 0. Of whole numbers below 256 it
    does neither, so that they come out as they went in. ``like`` are others that they stand beside.
    """
    other = values.dtype if like is None else like.dtype
    if other != values.dtype and (is_integral(other) or is_integral(values.dtype)):
        raise InvalidArgumentError(f"{name} has dtype {dtype_name(values.dtype)}; it must be {dtype_name(other)}")
    if not is_integral(values.dtype):
        return values
    rows = values if values.stride(-1) == 1 else values.clone(memory_format=torch.contiguous_format)
    return rows.view(torch.uint8).to(torch.float16)


def moved_rows(rows: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The inverse, of rows that were those of ``like``."""
    return rows if like.is_floating_point() else rows.to(torch.uint8).view(like.dtype)


def dropout_of(ratio: float, training: bool, like: torch.Tensor, seed: int | torch.Tensor | None = None) -> Dropout:
    """The arguments dropout_ratio, seed or seed_tensor, and offset of an operator, for rows ``like`` these.

    Outside of training the ratio is not looked at: it may be one that is traced. A seed that is None is drawn.
    """
    if training and not 0 <= ratio <= 1:
        raise InvalidArgumentError(f"dropout_ratio is {shown(ratio)}; it must be a number from 0 to 1")
    if not (training and ratio > 0):
        return {}
    seed = drawn_seed(like) if seed is None else seed
    return {"dropout_ratio": ratio, "offset": 0, "seed_tensor" if isinstance(seed, torch.Tensor) else "seed": seed}
