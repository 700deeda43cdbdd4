"""The operators with the names, argument orders and defaults of the package ``tzrec`` (TorchEasyRec).

A model that imports them from there runs with these by changing the import. docs/compatibility.md names the version of
the package. What an operator here takes besides are keywords.
"""

from __future__ import annotations

import functools

from . import _calling, functional, functional_layer
from .functional import add_positional_embeddings, layer_norm, rms_norm, split_2D_jagged, swish_layer_norm
from .functional_layer import addmm, jagged_dense_bmm_broadcast_add

_in_order = functools.partial(_calling.in_order, __name__)

hstu_mha = _in_order(
    functional.hstu_mha,
    "..., max_attn_len, contextual_seq_len, min_full_attn_seq_len, sort_by_length, kernel, enable_tma, attn_func, "
    "scaling_seqlen",
)
delta_hstu_mha = _in_order(functional.delta_hstu_mha, "..., scaling_seqlen")
add_timestamp_positional_embeddings = _in_order(
    functional.add_timestamp_positional_embeddings,
    "..., time_bucket_increments, kernel, query_time",
    round_embeddings=True,
    clamp_targets=True,
)
hstu_compute_uqvk = _in_order(
    functional_layer.hstu_compute_uqvk, "..., recompute_normed_x_in_backward, recompute_uvqk_in_backward"
)
hstu_preprocess_and_attention = _in_order(
    functional_layer.hstu_preprocess_and_attention, "..., enable_tma, attn_func, scaling_seqlen", enable_tma=False
)
concat_2D_jagged = _in_order(
    functional.concat_2D_jagged,
    "values_left, values_right, max_len_left, max_len_right, offsets_left, offsets_right, kernel",
    max_len_left=...,
    max_len_right=...,
)
hstu_compute_output = _in_order(
    functional_layer.hstu_compute_output, "..., concat_ux=concat_u, group_norm, recompute_y_in_backward, kernel"
)


__all__ = [
    "add_positional_embeddings", "add_timestamp_positional_embeddings", "addmm", "concat_2D_jagged", "delta_hstu_mha",
    "hstu_compute_output", "hstu_compute_uqvk", "hstu_mha", "hstu_preprocess_and_attention",
    "jagged_dense_bmm_broadcast_add", "layer_norm", "rms_norm", "split_2D_jagged", "swish_layer_norm",
]  # fmt: skip
