"""The operators with the names, argument orders and defaults of the package ``generative_recommenders``.

A model that imports them from there runs with these by changing the import. docs/compatibility.md names the version of
the package. What an operator here takes besides are keywords.
"""

from __future__ import annotations

from . import functional, functional_layer
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
    concat_x=...,
    mul_u_activation_type=...,
)
hstu_preprocess_and_attention = in_order(
    functional_layer.hstu_preprocess_and_attention,
    "x, norm_weight, norm_bias, norm_eps, num_heads, attn_dim, hidden_dim, uvqk_weight, uvqk_bias, max_seq_len, "
    "seq_offsets, attn_alpha, causal, num_targets, max_attn_len, contextual_seq_len, recompute_uvqk_in_backward, "
    "recompute_normed_x_in_backward, sort_by_length, prefill, kernel, enable_tma",
    __name__,
)
split_2D_jagged_multirow = split_2D_jagged


concat_2D_jagged = in_order(
    functional.concat_2D_jagged,
    "max_seq_len, values_left, values_right, max_len_left, max_len_right, offsets_left, offsets_right, kernel",
    __name__,
)
concat_2D_jagged_multirow = in_order(
    functional.concat_2D_jagged,
    "max_seq_len, values_left, values_right, offsets_left, offsets_right, max_len_left, max_len_right, kernel",
    __name__,
    "concat_2D_jagged_multirow",
    **dict.fromkeys(("offsets_left", "offsets_right", "max_len_left", "max_len_right"), ...),
)
hstu_split_l2_embeddings = in_order(
    functional.split_2D_jagged,
    "max_seq_len, x=values, prefix_offsets=offsets_left, l2_offsets=offsets_right, "
    "contextual_seq_len=n_prefix_to_right, kernel",
    __name__,
    "hstu_split_l2_embeddings",
    **dict.fromkeys(("offsets_left", "offsets_right", "n_prefix_to_right"), ...),
)
hstu_concat_l2_embeddings = in_order(
    functional.concat_2D_jagged,
    "max_prefix_len, prefix_x=values_left, prefix_offsets=offsets_left, max_l2_len, l2_x=values_right, "
    "l2_offsets=offsets_right, contextual_seq_len=n_prefix_from_right, kernel",
    __name__,
    "hstu_concat_l2_embeddings",
    **dict.fromkeys(("offsets_left", "offsets_right", "n_prefix_from_right"), ...),
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
