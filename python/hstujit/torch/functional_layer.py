"""The products of a layer, its two halves, and products of sequences, by names of the public packages (functional.py).

They take bf16, fp16 and fp32, whose products are tf32 on a GPU.
"""

from __future__ import annotations

from typing import Any

import torch

from ._arguments import dropout_of, fp32_precision, weight_like
from ._calling import calling
from ._masks import masks_of
from ._schema import OPERATORS as _ops
from .functional import hstu_mha

# Arguments of the projection, by name of the operators'.
_PROJECTION = {
    "input_norm_weight": "norm_weight",
    "input_norm_bias": "norm_bias",
    "eps": "norm_eps",
    "heads": "num_heads",
}


@calling("addmm")
def addmm(input: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, kernel: Any = None) -> torch.Tensor:
    """``input`` plus the product of ``mat1`` (L, k) and ``mat2`` (k, n). ``input`` is (n) or (L, n)."""
    return _ops.addmm(mat1, mat2, 1.0, input, 1.0, precision=fp32_precision())


@calling("jagged_dense_bmm_broadcast_add")
def jagged_dense_bmm_broadcast_add(
    max_seq_len: int,
    seq_offsets: torch.Tensor,
    jagged: torch.Tensor,
    dense: torch.Tensor,
    bias: torch.Tensor,
    kernel: Any = None,
    *,
    elementwise: bool = False,
) -> torch.Tensor:
    """The rows of each sequence, of ``jagged`` (L, k), times its matrix of ``dense`` (B, k, n), plus ``bias``.

    ``bias`` is (B, n), or (L, n) where it is ``elementwise``.
    """
    return _ops.jagged_dense_bmm_broadcast_add(
        jagged, dense, seq_offsets, max_seq_len, bias, elementwise=elementwise, precision=fp32_precision()
    )


@calling("hstu_compute_uqvk", **_PROJECTION)
def hstu_compute_uqvk(
    x: torch.Tensor,
    norm_weight: torch.Tensor,
    norm_bias: torch.Tensor,
    norm_eps: float,
    num_heads: int,
    attn_dim: int,
    hidden_dim: int,
    uvqk_weight: torch.Tensor,
    uvqk_bias: torch.Tensor,
    kernel: Any = None,
    *,
    recompute_normed_x_in_backward: bool = False,
    recompute_uvqk_in_backward: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """u, q, k and v of rows, columns of one matrix: ``hstu_compute_uqvk`` of docs/ops-layers.md.

    Args:
        x: (L, D).
        uvqk_weight: (D, 2 * num_heads * (hidden_dim + attn_dim)): columns of u, v, q and k, in this order.
        uvqk_bias: a number of each of these columns.
        recompute_normed_x_in_backward: backward normalises x again, for less memory.
        recompute_uvqk_in_backward: taken, and without effect: u is computed again, and the others are not needed.

    Returns:
        u (L, num_heads * hidden_dim), q and k (L, num_heads, attn_dim), v (L, num_heads, hidden_dim).
    """
    call = x, weight_like(norm_weight, x), uvqk_weight, weight_like(norm_bias, x), uvqk_bias, norm_eps
    _, uvqk = _ops.hstu_compute_uqvk(
        *call,
        heads=num_heads,
        attn_dim=attn_dim,
        hidden_dim=hidden_dim,
        training=torch.is_grad_enabled(),
        recompute_normed_x=recompute_normed_x_in_backward or not torch.is_grad_enabled(),
        precision=fp32_precision(),
    )
    wide, narrow = num_heads * hidden_dim, num_heads * attn_dim
    u, v, q, k = torch.split(uvqk, [wide, wide, narrow, narrow], dim=1)
    return u, q.view(-1, num_heads, attn_dim), k.view(-1, num_heads, attn_dim), v.view(-1, num_heads, hidden_dim)


@calling("hstu_preprocess_and_attention", alpha="attn_alpha", num_contexts="contextual_seq_len", **_PROJECTION)
def hstu_preprocess_and_attention(
    x: torch.Tensor,
    norm_weight: torch.Tensor,
    norm_bias: torch.Tensor,
    norm_eps: float,
    num_heads: int,
    attn_dim: int,
    hidden_dim: int,
    uvqk_weight: torch.Tensor,
    uvqk_bias: torch.Tensor,
    max_seq_len: int,
    seq_offsets: torch.Tensor,
    attn_alpha: float,
    causal: bool,
    num_targets: torch.Tensor | None,
    max_attn_len: int,
    contextual_seq_len: int | torch.Tensor,
    recompute_uvqk_in_backward: bool,
    recompute_normed_x_in_backward: bool,
    sort_by_length: bool,
    prefill: bool = False,
    kernel: Any = None,
    *,
    enable_tma: bool | None = None,
    attn_func: torch.Tensor | None = None,
    scaling_seqlen: int = -1,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
    """The half of a layer up to attention: ``hstu_preprocess_and_attention`` of docs/ops-layers.md.

    Arguments are those of :func:`hstu_compute_uqvk` and of :func:`hstu_mha`, and whether backward computes the
    projection and the rows that it is of again, for less memory.

    Returns:
        u and the attention output, both (L, num_heads * hidden_dim), and with ``prefill`` k and v, for a cache.
    """
    projection = norm_weight, norm_bias, norm_eps, num_heads, attn_dim, hidden_dim, uvqk_weight, uvqk_bias
    masks: dict[str, Any] = {"causal": causal, "max_attn_len": max_attn_len}
    if prefill:
        u, q, k, v = hstu_compute_uqvk(x, *projection)
        call = max_seq_len, attn_alpha, q, k, v, seq_offsets
        attn = hstu_mha(
            *call,
            num_targets=num_targets,
            contextual_seq_len=contextual_seq_len,
            attn_func=attn_func,
            scaling_seqlen=scaling_seqlen,
            **masks,
        )
        return u, attn.view(-1, num_heads * hidden_dim), k, v
    weight, bias = weight_like(norm_weight, x), weight_like(norm_bias, x)
    _, _, u, attn = _ops.hstu_preprocess_and_attention(
        *(x, weight, uvqk_weight, seq_offsets, max_seq_len, attn_alpha, bias, uvqk_bias),
        eps=norm_eps,
        scaling_seqlen=scaling_seqlen,
        heads=num_heads,
        attn_dim=attn_dim,
        hidden_dim=hidden_dim,
        training=torch.is_grad_enabled(),
        recompute_normed_x=recompute_normed_x_in_backward or not torch.is_grad_enabled(),
        recompute_uvqk=recompute_uvqk_in_backward or not torch.is_grad_enabled(),
        precision=fp32_precision(),
        **{**masks, **masks_of(attn_func, num_targets, contextual_seq_len, seq_offsets)},
    )
    return u, attn.view(-1, num_heads * hidden_dim), None, None


@calling(
    "hstu_compute_output",
    output_norm_weight="norm_weight",
    output_norm_bias="norm_bias",
    eps="norm_eps",
    heads="num_heads",
    hidden_dim="linear_dim",
    mul_u_activation="mul_u_activation_type",
    recompute_y="recompute_y_in_backward",
)
def hstu_compute_output(
    attn: torch.Tensor,
    u: torch.Tensor,
    x: torch.Tensor,
    norm_weight: torch.Tensor,
    norm_bias: torch.Tensor,
    norm_eps: float,
    output_weight: torch.Tensor,
    num_heads: int,
    linear_dim: int,
    dropout_ratio: float,
    training: bool,
    *,
    concat_u: bool,
    concat_x: bool | None = None,
    mul_u_activation_type: str = "none",
    group_norm: bool,
    recompute_y_in_backward: bool,
    kernel: Any = None,
) -> torch.Tensor:
    """The half of a layer behind attention: ``hstu_compute_output`` of docs/ops-layers.md.

    Args:
        attn, u: (L, num_heads * linear_dim).
        x: (L, D), which the result is added to.
        output_weight: (Y, D), with Y columns of what is concatenated.
        concat_u, concat_x: u and attn stand before the product; None: attn does where u does. With ``group_norm`` both
            do, or none of them.
        mul_u_activation_type: ``"none"``, ``"silu"`` or ``"sigmoid"`` of the u that multiplies. Without effect with
            ``group_norm``.
    """
    concat_x = concat_u if concat_x is None else concat_x
    both = concat_u and concat_x
    call = attn, u, x, weight_like(norm_weight, x), output_weight, weight_like(norm_bias, x), norm_eps
    _, out = _ops.hstu_compute_output(
        *call,
        **dropout_of(dropout_ratio, training, x),
        heads=num_heads,
        hidden_dim=linear_dim,
        training=torch.is_grad_enabled(),
        group_norm=group_norm,
        concat_u=both if group_norm else concat_u,
        concat_x=both if group_norm else concat_x,
        recompute_y=recompute_y_in_backward or not torch.is_grad_enabled(),
        mul_u_activation="none" if group_norm else mul_u_activation_type,
        precision=fp32_precision(),
    )
    return out


__all__ = [
    "addmm", "hstu_compute_output", "hstu_compute_uqvk", "hstu_preprocess_and_attention",
    "jagged_dense_bmm_broadcast_add",
]  # fmt: skip
