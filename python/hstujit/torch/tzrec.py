"""The operators with the names, argument orders and defaults of the package ``tzrec`` (TorchEasyRec).

A model that imports them from there runs with these by changing the import. docs/compatibility.md names the version of
the package. What an operator here takes besides are keywords.
"""

from __future__ import annotations

from . import functional, functional_layer
from ._in_order import in_order
from .functional import add_positional_embeddings, layer_norm, rms_norm, split_2D_jagged, swish_layer_norm
from .functional_layer import addmm, jagged_dense_bmm_broadcast_add

hstu_mha = in_order(
    functional.hstu_mha,
    "max_seq_len, alpha, q, k, v, seq_offsets, causal, dropout_pr, training, num_targets, max_attn_len, "
    "contextual_seq_len, min_full_attn_seq_len, sort_by_length, kernel, enable_tma, attn_func, scaling_seqlen",
    __name__,
)
delta_hstu_mha = in_order(
    functional.delta_hstu_mha,
    "max_seq_len, alpha, delta_q, k, v, seq_offsets, num_targets, max_attn_len, contextual_seq_len, kernel, "
    "enable_tma, scaling_seqlen",
    __name__,
)
add_timestamp_positional_embeddings = in_order(
    functional.add_timestamp_positional_embeddings,
    "alpha, max_seq_len, max_contextual_seq_len, position_embeddings_weight, timestamp_embeddings_weight, seq_offsets, "
    "seq_lengths, seq_embeddings, timestamps, num_targets, interleave_targets, time_bucket_fn, "
    "time_bucket_increments, kernel, query_time",
    __name__,
    round_embeddings=True,
    clamp_targets=True,
)
hstu_compute_uqvk = in_order(
    functional_layer.hstu_compute_uqvk,
    "x, norm_weight, norm_bias, norm_eps, num_heads, attn_dim, hidden_dim, uvqk_weight, uvqk_bias, kernel, "
    "recompute_normed_x_in_backward, recompute_uvqk_in_backward",
    __name__,
)
hstu_preprocess_and_attention = in_order(
    functional_layer.hstu_preprocess_and_attention,
    "x, norm_weight, norm_bias, norm_eps, num_heads, attn_dim, hidden_dim, uvqk_weight, uvqk_bias, max_seq_len, "
    "seq_offsets, attn_alpha, causal, num_targets, max_attn_len, contextual_seq_len, recompute_uvqk_in_backward, "
    "recompute_normed_x_in_backward, sort_by_length, prefill, kernel, enable_tma, attn_func, scaling_seqlen",
    __name__,
    enable_tma=False,
)


concat_2D_jagged = in_order(
    functional.concat_2D_jagged,
    "values_left, values_right, max_len_left, max_len_right, offsets_left, offsets_right, kernel",
    __name__,
    max_len_left=...,
    max_len_right=...,
)


hstu_compute_output = in_order(
    functional_layer.hstu_compute_output,
    "attn, u, x, norm_weight, norm_bias, norm_eps, output_weight, num_heads, linear_dim, dropout_ratio, training, "
    "concat_ux=concat_u, group_norm, recompute_y_in_backward, kernel",
    __name__,
)


__all__ = [
    "add_positional_embeddings",
    "add_timestamp_positional_embeddings",
    "addmm",
    "concat_2D_jagged",
    "delta_hstu_mha",
    "hstu_compute_output",
    "hstu_compute_uqvk",
    "hstu_mha",
    "hstu_preprocess_and_attention",
    "jagged_dense_bmm_broadcast_add",
    "layer_norm",
    "rms_norm",
    "split_2D_jagged",
    "swish_layer_norm",
]
