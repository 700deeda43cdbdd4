"""The operators under the names that the public HSTU packages have for them.

The packages do not agree on all arguments. What stands in one place in both is positional here, and all else is a
keyword. :mod:`hstujit.torch.generative_recommenders` and :mod:`hstujit.torch.tzrec` have each package's own order, so
that a model runs by changing an import. Arguments that only choose among the kernels of those packages, such as
``sort_by_length`` and ``kernel``, are taken and have no effect.
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import InvalidArgumentError
from ._arguments import (
    dropout_of,
    flat_rows,
    fp32_precision,
    integers_as,
    like_offsets,
    moved_rows,
    rows_to_move,
    targets_of,
    weight_like,
)
from ._calling import calling
from ._masks import masks_of
from ._schema import OPERATORS as _ops


@calling("hstu_attention", num_contexts="contextual_seq_len", dropout_ratio="dropout_pr")
def hstu_mha(
    max_seq_len: int,
    alpha: float,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    seq_offsets: torch.Tensor,
    causal: bool = True,
    dropout_pr: float = 0.0,
    training: bool = True,
    num_targets: torch.Tensor | None = None,
    *,
    max_attn_len: int = 0,
    contextual_seq_len: int | torch.Tensor = 0,
    min_full_attn_seq_len: int = 0,
    sort_by_length: bool = False,
    kernel: Any = None,
    enable_tma: bool = False,
    attn_func: torch.Tensor | None = None,
    scaling_seqlen: int = -1,
    attn_scale: torch.Tensor | None = None,
    num_softmax_heads: int = 0,
    seed: int | torch.Tensor | None = None,
) -> torch.Tensor:
    """Attention of each sequence over itself: ``hstu_attention`` of docs/ops-attention.md.

    Arguments that are not named here are those of :func:`hstujit.torch.attention`.

    Args:
        dropout_pr: its ``dropout_ratio``.
        contextual_seq_len: rows at the beginning of a sequence that see its history; a tensor (B) has the number of
            each, which is ``num_contexts`` of the operator.
        attn_func: (1 or heads, F, L) integers, in place of the other arguments of the mask: row i sees the columns
            ``[0, f[0])``, ``[f[1], f[2])`` and so on, where f is ``attn_func[head, :, i]`` and F is odd.
        attn_scale: (L) or a single number, factors of the rows of P, behind the activation, in place of the scale.
        num_softmax_heads: so many of the first heads have softmax in place of activation and scale.

    Returns:
        (L, heads, hidden_dim).
    """
    call = q, k, v, seq_offsets, max_seq_len, alpha
    return _ops.hstu_attention(
        *call,
        attn_scale=None if attn_scale is None else attn_scale.float().reshape(-1),
        scaling_seqlen=scaling_seqlen,
        max_attn_len=max_attn_len,
        **{"causal": causal, **masks_of(attn_func, num_targets, contextual_seq_len, seq_offsets)},
        min_full_attn_seq_len=min_full_attn_seq_len,
        num_softmax_heads=num_softmax_heads,
        precision=fp32_precision(),
        **dropout_of(dropout_pr, training, q, seed),
    )


@calling("delta_hstu_attention", q="delta_q", num_contexts="contextual_seq_len")
def delta_hstu_mha(
    max_seq_len: int,
    alpha: float,
    delta_q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    seq_offsets: torch.Tensor,
    num_targets: torch.Tensor | None = None,
    max_attn_len: int = 0,
    contextual_seq_len: int | torch.Tensor = 0,
    kernel: Any = None,
    enable_tma: bool = False,
    *,
    attn_func: torch.Tensor | None = None,
    scaling_seqlen: int = -1,
    num_softmax_heads: int = 0,
) -> torch.Tensor:
    """Attention of the last rows of each sequence over all its rows: ``delta_hstu_attention`` of docs/ops-attention.md.

    ``delta_q`` is (B * m, heads, attn_dim): the last m rows of each sequence, whose numbers ``attn_func`` has.
    """
    batch = seq_offsets.shape[0] - 1
    delta_len = delta_q.shape[0] // batch if batch > 0 else 1  # no sequences have any number of new rows
    call = delta_q, k, v, seq_offsets, max_seq_len, delta_len, alpha
    return _ops.delta_hstu_attention(
        *call,
        scaling_seqlen=scaling_seqlen,
        max_attn_len=max_attn_len,
        **masks_of(attn_func, num_targets, contextual_seq_len, seq_offsets),
        num_softmax_heads=num_softmax_heads,
        precision=fp32_precision(),
    )


@calling("layer_norm")
def layer_norm(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float = 1e-5, kernel: Any = None
) -> torch.Tensor:
    """Each row of x less its mean, over its deviation, times weight, plus bias. x is (..., D)."""
    return _ops.layer_norm(flat_rows(x), weight_like(weight, x), weight_like(bias, x), eps).view(x.shape)


@calling("rms_norm")
def rms_norm(
    x: torch.Tensor, weight: torch.Tensor | None, eps: float = 1e-5, kernel: Any = None, *, silu: bool = False
) -> torch.Tensor:
    """Each row of x over its root mean square, times weight; with ``silu`` the silu of that. x is (..., D)."""
    return _ops.rms_norm(flat_rows(x), weight_like(weight, x), eps, silu=silu).view(x.shape)


@calling("swish_layer_norm")
def swish_layer_norm(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float = 1e-5, kernel: Any = None
) -> torch.Tensor:
    """Each row of x times the sigmoid of its layer norm. x is (..., D)."""
    return _ops.swish_layer_norm(flat_rows(x), weight_like(weight, x), weight_like(bias, x), eps).view(x.shape)


@calling("hstu_norm_mul_dropout", heads="num_heads")
def hstu_norm_mul_dropout(
    x: torch.Tensor,
    u: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float,
    dropout_ratio: float,
    training: bool,
    concat_ux: bool = False,
    group_norm: bool = False,
    num_heads: int = 1,
    linear_dim: int = -1,
    seed: int | torch.Tensor | None = None,
) -> torch.Tensor:
    """u times the layer norm of x, behind u and x with ``concat_ux``, with dropout in training.

    Args:
        x, u: (L, D).
        weight, bias: (D), or (num_heads) with ``group_norm``, which normalises the columns of each head apart.
        linear_dim: columns of a head: D / num_heads, which -1 stands for.
        seed: decides what is dropped: a number, or (1) int64. None: drawn by PyTorch's generator of x's device.
    """
    if group_norm and num_heads > 0 and linear_dim not in (-1, x.shape[-1] // num_heads):
        raise InvalidArgumentError(f"linear_dim is {linear_dim}; it must be {x.shape[-1] // num_heads}, D / num_heads")
    call = x, u, weight_like(weight, x), weight_like(bias, x), eps
    return _ops.hstu_norm_mul_dropout(
        *call,
        **dropout_of(dropout_ratio, training, x, seed),
        group_norm=group_norm,
        heads=num_heads,
        concat_u=concat_ux,
        concat_x=concat_ux,
    )


@calling("add_positional_embeddings")
def add_positional_embeddings(
    alpha: float,
    max_seq_len: int,
    position_embeddings_weight: torch.Tensor,
    seq_offsets: torch.Tensor,
    seq_lengths: torch.Tensor,
    seq_embeddings: torch.Tensor,
    num_targets: torch.Tensor | None,
    interleave_targets: bool,
    kernel: Any = None,
) -> torch.Tensor:
    """Rows times alpha, plus the embedding of each one's position. ``seq_lengths`` follow from ``seq_offsets``."""
    table = weight_like(position_embeddings_weight, seq_embeddings)
    call = seq_embeddings, table, alpha, seq_offsets, like_offsets(num_targets, seq_offsets)
    return _ops.add_positional_embeddings(*call, interleave_targets=interleave_targets and num_targets is not None)


@calling("add_timestamp_positional_embeddings")
def add_timestamp_positional_embeddings(
    alpha: float,
    max_seq_len: int,
    max_contextual_seq_len: int,
    position_embeddings_weight: torch.Tensor,
    timestamp_embeddings_weight: torch.Tensor,
    seq_offsets: torch.Tensor,
    seq_lengths: torch.Tensor,
    seq_embeddings: torch.Tensor,
    timestamps: torch.Tensor,
    num_targets: torch.Tensor | None,
    interleave_targets: bool,
    time_bucket_fn: str = "sqrt",
    *,
    time_bucket_increments: float = 60.0,
    kernel: Any = None,
    query_time: torch.Tensor | None = None,
    round_embeddings: bool = False,
    clamp_targets: bool = False,
) -> torch.Tensor:
    """Rows times alpha, plus the embeddings of each one's position and age.

    Args:
        timestamps: (L), in seconds.
        query_time: (B), which ages are counted to; None: each sequence's last timestamp.
        round_embeddings: as the public packages, in 16-bit types rounds alpha times a row, and the sum of the two
            embeddings, before it adds them; else rounds once.
        clamp_targets: more targets than a sequence has rows are as many as it has; else they are refused.
    """
    weights = position_embeddings_weight, timestamp_embeddings_weight
    tables = [weight_like(weight, seq_embeddings) for weight in weights]
    times = integers_as("timestamps", timestamps, torch.int64)
    return _ops.add_timestamp_positional_embeddings(
        *(seq_embeddings, *tables, alpha, time_bucket_increments, seq_offsets, times, max_contextual_seq_len),
        num_targets=targets_of(num_targets, seq_offsets, clamp_targets),
        query_time=None if query_time is None else integers_as("query_time", query_time, torch.int64),
        interleave_targets=interleave_targets and num_targets is not None,
        time_bucket_fn=time_bucket_fn,
        round_embeddings=round_embeddings,
    )


@calling("concat_2d_jagged", left="values_left", right="values_right")
def concat_2D_jagged(
    *,
    values_left: torch.Tensor,
    values_right: torch.Tensor,
    max_len_left: int | None = None,
    max_len_right: int | None = None,
    offsets_left: torch.Tensor | None = None,
    offsets_right: torch.Tensor | None = None,
    kernel: Any = None,
    n_prefix_from_right: int = 0,
) -> torch.Tensor:
    """Of each sequence the rows of the left tensor, then those of the right one.

    A side without offsets is dense: it has its ``max_len`` rows of each sequence. The first ``n_prefix_from_right``
    rows of the right side stand before the left one. Rows may be of integers and bool, too.
    """
    if offsets_left is None and offsets_right is None and max_len_left is not None and max_len_right is not None:
        rows, length = (values_left, max_len_left) if max_len_left else (values_right, max_len_right)
        batch = rows.shape[0] // length if length > 0 else 0
        offsets_left = _dense_offsets("values_left", values_left, batch, max_len_left, max_len_left)
    rows = _ops.concat_2d_jagged(
        rows_to_move(values_left, "values_left"),
        rows_to_move(values_right, "values_right", values_left),
        offsets_left,
        offsets_right,
        max_len_right=None if offsets_right is not None else max_len_right,
        n_prefix_from_right=n_prefix_from_right or None,
        max_len_left=None if offsets_left is not None else max_len_left,
    )
    return moved_rows(rows, values_left)


@calling("split_2d_jagged", left_rows="total_len_left", right_rows="total_len_right")
def split_2D_jagged(
    max_seq_len: int | None,
    values: torch.Tensor,
    total_len_left: int | None = None,
    total_len_right: int | None = None,
    max_len_left: int | None = None,
    max_len_right: int | None = None,
    offsets_left: torch.Tensor | None = None,
    offsets_right: torch.Tensor | None = None,
    kernel: Any = None,
    *,
    n_prefix_to_right: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The inverse of :func:`concat_2D_jagged`, of rows of the same types.

    Without ``total_len_left`` and ``total_len_right``, of two jagged sides, their rows are read from the offsets. On a
    GPU that waits for the stream.
    """
    if offsets_left is None and offsets_right is None and max_len_left is not None and max_len_right is not None:
        length = max_len_left + max_len_right
        batch = values.shape[0] // length if length > 0 else 0
        offsets_left = _dense_offsets("values", values, batch, length, max_len_left)
    if total_len_left is None and total_len_right is not None:
        total_len_left = values.shape[0] - total_len_right
    both = offsets_left is not None and offsets_right is not None
    left, right = _ops.split_2d_jagged(
        rows_to_move(values, "values"),
        offsets_left,
        offsets_right,
        max_len_right=None if offsets_right is not None else max_len_right,
        max_len_left=None if offsets_left is not None else max_len_left,
        n_prefix_to_right=n_prefix_to_right or None,
        left_rows=total_len_left if both else None,
    )
    return moved_rows(left, values), moved_rows(right, values)


def _dense_offsets(name: str, values: torch.Tensor, batch: int, length: int, of_side: int) -> torch.Tensor:
    """Offsets of a dense side, where both are dense: the operator reads one of them by offsets.

    Sizes that are symbols of a graph are not compared, since a comparison would make a graph of each of them.
    """
    rows = values.shape[0]
    if isinstance(rows, int) and isinstance(batch, int) and rows != batch * length:
        raise InvalidArgumentError(
            f"{name}.shape[0] is {rows}; it must be {batch * length}, B = {batch} times {length}"
        )
    return torch.arange(batch + 1, device=values.device) * of_side


@calling("jagged_dense_broadcast_add")
def jagged_dense_broadcast_add(
    max_seq_len: int, seq_offsets: torch.Tensor, jagged: torch.Tensor, dense: torch.Tensor, kernel: Any = None
) -> torch.Tensor:
    """One row of dense, (B, D), is added to all rows of a sequence of jagged, (L, D)."""
    return _ops.jagged_dense_broadcast_add(jagged, dense, seq_offsets)


@calling("complete_cumsum")
def complete_cumsum(lengths: torch.Tensor) -> torch.Tensor:
    """Offsets (B + 1) of lengths (B)."""
    return _ops.complete_cumsum(lengths)


@calling("jagged_to_padded_dense")
def jagged_to_padded_dense(
    values: torch.Tensor, seq_offsets: torch.Tensor, max_len: int, padding_value: float = 0.0
) -> torch.Tensor:
    """Sequences (L, D), cut or padded to ``max_len`` rows each: (B, max_len, D)."""
    padding = padding_value if padding_value != 0 else None
    dense = _ops.jagged_to_padded_dense(values, seq_offsets, max_len, padding)
    return dense.view(seq_offsets.shape[0] - 1, max_len, values.shape[1])


@calling("dense_to_jagged", out_rows="total_len", **{"dense.shape[1]": "dense.shape[2]"})
def dense_to_jagged(dense: torch.Tensor, seq_offsets: torch.Tensor, total_len: int | None = None) -> torch.Tensor:
    """Of dense, (B, max_len, D), as many rows of each sequence as it has: (L, D).

    Without ``total_len``, L is read from the offsets. On a GPU that waits for the stream.
    """
    if dense.dim() != 3:
        raise InvalidArgumentError(f"dense has shape {tuple(dense.shape)}; it must be (B, max_len, D)")
    return _ops.dense_to_jagged(dense.flatten(0, 1), seq_offsets, dense.shape[1], out_rows=total_len)


__all__ = [
    "add_positional_embeddings", "add_timestamp_positional_embeddings", "complete_cumsum", "concat_2D_jagged",
    "delta_hstu_mha", "dense_to_jagged", "hstu_mha", "hstu_norm_mul_dropout", "jagged_dense_broadcast_add",
    "jagged_to_padded_dense", "layer_norm", "rms_norm", "split_2D_jagged", "swish_layer_norm",
]  # fmt: skip
