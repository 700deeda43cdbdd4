"""The operators with the names, argument orders and defaults of the package ``generative_recommenders``.

A model that imports them from there runs with these by changing the import. docs/compatibility.md names the version of
the package. What an operator here takes besides are keywords.
"""

from __future__ import annotations

import functools

from . import _calling, functional, functional_layer
from .functional import delta_hstu_mha, layer_norm, split_2D_jagged, swish_layer_norm
from .functional_layer import addmm, hstu_compute_uqvk, jagged_dense_bmm_broadcast_add

_in_order = functools.partial(_calling.in_order, __name__)

hstu_mha = _in_order(
    functional.hstu_mha,
    "..., attn_scale, max_attn_len, contextual_seq_len, min_full_attn_seq_len, sort_by_length, kernel, enable_tma",
)
hstu_mha_cuda = _in_order(
    functional.hstu_mha,
    "max_seq_len, alpha, q, k, v, seq_offsets, num_targets, max_attn_len, contextual_seq_len",
    "hstu_mha_cuda",
)
rms_norm = _in_order(functional.rms_norm, "..., silu")
add_timestamp_positional_embeddings = _in_order(
    functional.add_timestamp_positional_embeddings, "..., kernel", round_embeddings=True, clamp_targets=True
)
hstu_compute_output = _in_order(
    functional_layer.hstu_compute_output,
    "..., concat_u, concat_x, mul_u_activation_type, group_norm, recompute_y_in_backward, kernel",
    concat_x=...,
    mul_u_activation_type=...,
)
hstu_preprocess_and_attention = _in_order(functional_layer.hstu_preprocess_and_attention, "..., enable_tma")
split_2D_jagged_multirow = split_2D_jagged
concat_2D_jagged = _in_order(
    functional.concat_2D_jagged,
    "max_seq_len, values_left, values_right, max_len_left, max_len_right, offsets_left, offsets_right, kernel",
)
concat_2D_jagged_multirow = _in_order(
    functional.concat_2D_jagged,
    "max_seq_len, values_left, values_right, offsets_left, offsets_right, max_len_left, max_len_right, kernel",
    "concat_2D_jagged_multirow",
    **dict.fromkeys(("offsets_left", "offsets_right", "max_len_left", "max_len_right"), ...),
)
hstu_split_l2_embeddings = _in_order(
    functional.split_2D_jagged,
    "max_seq_len, x=values, prefix_offsets=offsets_left, l2_offsets=offsets_right, "
    "contextual_seq_len=n_prefix_to_right, kernel",
    "hstu_split_l2_embeddings",
    **dict.fromkeys(("offsets_left", "offsets_right", "n_prefix_to_right"), ...),
)
hstu_concat_l2_embeddings = _in_order(
    functional.concat_2D_jagged,
    "max_prefix_len, prefix_x=values_left, prefix_offsets=offsets_left, max_l2_len, l2_x=values_right, "
    "l2_offsets=offsets_right, contextual_seq_len=n_prefix_from_right, kernel",
    "hstu_concat_l2_embeddings",
    **dict.fromkeys(("offsets_left", "offsets_right", "n_prefix_from_right"), ...),
)


__all__ = [
    "add_timestamp_positional_embeddings", "addmm", "concat_2D_jagged", "concat_2D_jagged_multirow", "delta_hstu_mha",
    "hstu_compute_output", "hstu_compute_uqvk", "hstu_concat_l2_embeddings", "hstu_mha", "hstu_mha_cuda",
    "hstu_preprocess_and_attention", "hstu_split_l2_embeddings", "jagged_dense_bmm_broadcast_add", "layer_norm",
    "rms_norm", "split_2D_jagged", "split_2D_jagged_multirow", "swish_layer_norm",
]  # fmt: skip
