"""The operators with the names, argument orders and defaults of the package ``generative_recommenders``.

A model that imports them from there runs with these by changing the import. docs/compatibility.md names the version of
the package. What an operator here takes besides are keywords.
"""

from __future__ import annotations

from typing import Any

import torch

from . import functional, functional_layer
from ._explained import calling
from ._in_order import in_order
from .functional import delta_hstu_mha, layer_norm, split_2D_jagged, swish_layer_norm
from .functional_layer import (
    addmm,
    hstu_compute_uqvk,
    jagged_dense_bmm_broadcast_add,
)

hstu_mha = in_order(
    functional.hstu_mha,
    "max_seq_len, alpha, q, k, v, seq_offsets, causal, dropout_pr, training, num_targets, attn_scale, max_attn_len, "
    "contextual_seq_len, min_full_attn_seq_len, sort_by_length, kernel, enable_tma",
    __name__,
)
hstu_mha_cuda = in_order(
    functional.hstu_mha,
    "max_seq_len, alpha, q, k, v, seq_offsets, num_targets, max_attn_len, contextual_seq_len",
    __name__,
    "hstu_mha_cuda",
)
rms_norm = in_order(functional.rms_norm, "x, weight, eps, kernel, silu", __name__)
add_timestamp_positional_embeddings = in_order(
    functional.add_timestamp_positional_embeddings,
    "alpha, max_seq_len, max_contextual_seq_len, position_embeddings_weight, timestamp_embeddings_weight, seq_offsets, "
    "seq_lengths, seq_embeddings, timestamps, num_targets, interleave_targets, time_bucket_fn, kernel",
    __name__,
    round_embeddings=True,
    clamp_targets=True,
)
hstu_compute_output = in_order(
    functional_layer.hstu_compute_output,
    "attn, u, x, norm_weight, norm_bias, norm_eps, output_weight, num_heads, linear_dim, dropout_ratio, training, "
    "concat_u, concat_x, mul_u_activation_type, group_norm, recompute_y_in_backward, kernel",
    __name__,
)
hstu_preprocess_and_attention = in_order(
    functional_layer.hstu_preprocess_and_attention,
    "x, norm_weight, norm_bias, norm_eps, num_heads, attn_dim, hidden_dim, uvqk_weight, uvqk_bias, max_seq_len, "
    "seq_offsets, attn_alpha, causal, num_targets, max_attn_len, contextual_seq_len, recompute_uvqk_in_backward, "
    "recompute_normed_x_in_backward, sort_by_length, prefill, kernel, enable_tma",
    __name__,
)
split_2D_jagged_multirow = split_2D_jagged


@calling(functional.concat_2D_jagged)
def concat_2D_jagged(
    max_seq_len: int,
    values_left: torch.Tensor,
    values_right: torch.Tensor,
    max_len_left: int | None = None,
    max_len_right: int | None = None,
    offsets_left: torch.Tensor | None = None,
    offsets_right: torch.Tensor | None = None,
    kernel: Any = None,
) -> torch.Tensor:
    """:func:`hstujit.torch.concat_2D_jagged`, which needs no ``max_seq_len``."""
    return functional.concat_2D_jagged(
        values_left=values_left,
        values_right=values_right,
        max_len_left=max_len_left,
        max_len_right=max_len_right,
        offsets_left=offsets_left,
        offsets_right=offsets_right,
    )


@calling(functional.concat_2D_jagged)
def concat_2D_jagged_multirow(
    max_seq_len: int,
    values_left: torch.Tensor,
    values_right: torch.Tensor,
    offsets_left: torch.Tensor | None,
    offsets_right: torch.Tensor | None,
    max_len_left: int,
    max_len_right: int,
    kernel: Any = None,
) -> torch.Tensor:
    """:func:`concat_2D_jagged`, with lengths that must be given."""
    return concat_2D_jagged(
        max_seq_len, values_left, values_right, max_len_left, max_len_right, offsets_left, offsets_right
    )


@calling(
    functional.split_2D_jagged,
    values="x",
    offsets_left="prefix_offsets",
    offsets_right="l2_offsets",
    n_prefix_to_right="contextual_seq_len",
)
def hstu_split_l2_embeddings(
    max_seq_len: int,
    x: torch.Tensor,
    prefix_offsets: torch.Tensor,
    l2_offsets: torch.Tensor,
    contextual_seq_len: int,
    kernel: Any = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """:func:`hstujit.torch.split_2D_jagged`, whose first ``contextual_seq_len`` rows go to the right."""
    return functional.split_2D_jagged(
        max_seq_len, x, offsets_left=prefix_offsets, offsets_right=l2_offsets, n_prefix_to_right=contextual_seq_len
    )


@calling(
    functional.concat_2D_jagged,
    values_left="prefix_x",
    values_right="l2_x",
    offsets_left="prefix_offsets",
    offsets_right="l2_offsets",
    n_prefix_from_right="contextual_seq_len",
)
def hstu_concat_l2_embeddings(
    max_prefix_len: int,
    prefix_x: torch.Tensor,
    prefix_offsets: torch.Tensor,
    max_l2_len: int,
    l2_x: torch.Tensor,
    l2_offsets: torch.Tensor,
    contextual_seq_len: int,
    kernel: Any = None,
) -> torch.Tensor:
    """:func:`hstujit.torch.concat_2D_jagged`, whose first ``contextual_seq_len`` rows come from the right."""
    return functional.concat_2D_jagged(
        values_left=prefix_x,
        values_right=l2_x,
        offsets_left=prefix_offsets,
        offsets_right=l2_offsets,
        n_prefix_from_right=contextual_seq_len,
    )


__all__ = [
    "add_timestamp_positional_embeddings",
    "addmm",
    "concat_2D_jagged",
    "concat_2D_jagged_multirow",
    "delta_hstu_mha",
    "hstu_compute_output",
    "hstu_compute_uqvk",
    "hstu_concat_l2_embeddings",
    "hstu_mha",
    "hstu_mha_cuda",
    "hstu_preprocess_and_attention",
    "hstu_split_l2_embeddings",
    "jagged_dense_bmm_broadcast_add",
    "layer_norm",
    "rms_norm",
    "split_2D_jagged",
    "split_2D_jagged_multirow",
    "swish_layer_norm",
]
