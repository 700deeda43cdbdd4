"""A call of each function of hstujit.torch, and of its modules of public packages, with every tensor that it takes."""

import inspect

import torch
import torch_cases

import hstujit.torch
from hstujit.torch import generative_recommenders, tzrec

MODULES = (hstujit.torch, generative_recommenders, tzrec)
# Functions of hstujit.torch that are none of a public package.
OTHERS = "attention", "head", "pair", "patch", "row", "scalar", "sequence", "table", "unpatch"


def functions():
    """Module and name of all that call an operator; attention has tests of its own."""
    for module in MODULES:
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)) and name not in OTHERS:
                yield module, name


def given():
    """Arguments by name of the function: those of all modules that have it."""
    tensor, offsets = torch_cases.tensor, torch_cases.offsets()
    rows = torch_cases.ROWS
    targets, others = torch.tensor([1, 0, 2]), torch_cases.offsets(0, 2, 5, 6)
    x, weight, bias = tensor(rows, 16), tensor(16, seed=1), tensor(16, seed=2)
    norm = {"x": x, "weight": weight, "bias": bias, "eps": 1e-5}
    q, k, v = tensor(rows, 2, 16), tensor(rows, 2, 16, seed=1), tensor(rows, 2, 8, seed=2)
    attention = {"max_seq_len": 8, "alpha": 0.25, "q": q, "k": k, "v": v, "seq_offsets": offsets}
    attention["num_targets"] = targets
    positions = {
        "alpha": 2.0, "max_seq_len": 8, "max_contextual_seq_len": 0, "seq_offsets": offsets,
        "seq_lengths": offsets.diff(), "seq_embeddings": x, "position_embeddings_weight": tensor(5, 16, seed=3),
        "timestamp_embeddings_weight": tensor(4, 16, seed=8), "num_targets": targets, "interleave_targets": False,
        "timestamps": torch.tensor([5, 100, 900, 7, 9, 400, 4000, 10000]),
        "query_time": torch.tensor([1000, 1000, 11000]),
    }  # fmt: skip
    both = {"values_left": x, "values_right": tensor(6, 16), "offsets_left": offsets, "offsets_right": others}
    both |= {"max_seq_len": 8, "max_len_left": 5, "max_len_right": 3}
    split = {"values": tensor(14, 16), "max_seq_len": 8, "offsets_left": offsets, "offsets_right": others}
    projection = {
        "x": x, "norm_weight": weight, "norm_bias": bias, "norm_eps": 1e-5, "num_heads": 2, "attn_dim": 16,
        "hidden_dim": 8, "uvqk_weight": 0.25 * tensor(16, 96, seed=15), "uvqk_bias": tensor(96, seed=17),
    }  # fmt: skip
    flags = ("recompute_uvqk_in_backward", "recompute_normed_x_in_backward", "sort_by_length")
    output = {
        "attn": x, "u": tensor(rows, 16, seed=14), "x": tensor(rows, 16, seed=12), "norm_weight": weight,
        "norm_bias": bias, "norm_eps": 1e-5, "output_weight": 0.25 * tensor(48, 16, seed=16), "num_heads": 2,
        "linear_dim": 8, "dropout_ratio": 0.0, "training": False, "concat_u": True, "concat_x": True,
        "concat_ux": True, "mul_u_activation_type": "none", "group_norm": False, "recompute_y_in_backward": True,
    }  # fmt: skip
    bmm = {"max_seq_len": 8, "seq_offsets": offsets, "jagged": x, "dense": tensor(3, 16, 24, seed=21)}
    return {
        "hstu_mha": {**attention, "attn_scale": tensor(rows, seed=6)},
        "hstu_mha_cuda": attention,
        "delta_hstu_mha": {**attention, "delta_q": tensor(3, 2, 16)},
        "layer_norm": norm,
        "rms_norm": norm,
        "swish_layer_norm": norm,
        "hstu_norm_mul_dropout": {**norm, "u": x + 1, "dropout_ratio": 0.0, "training": False, "concat_ux": True},
        "add_positional_embeddings": positions,
        "add_timestamp_positional_embeddings": positions,
        "concat_2D_jagged": both,
        "concat_2D_jagged_multirow": both,
        "hstu_concat_l2_embeddings": {
            "max_prefix_len": 5, "prefix_x": x, "prefix_offsets": offsets, "max_l2_len": 3, "l2_x": tensor(6, 16),
            "l2_offsets": others, "contextual_seq_len": 0,
        },
        "split_2D_jagged": split,
        "split_2D_jagged_multirow": split,
        "hstu_split_l2_embeddings": {
            "max_seq_len": 8, "x": tensor(14, 16), "prefix_offsets": offsets, "l2_offsets": others,
            "contextual_seq_len": 0,
        },
        "jagged_dense_broadcast_add": {**bmm, "dense": tensor(3, 16)},
        "complete_cumsum": {"lengths": torch.tensor(torch_cases.LENGTHS)},
        "jagged_to_padded_dense": {"values": x, "seq_offsets": offsets, "max_len": 4, "padding_value": 1.5},
        "dense_to_jagged": {"dense": tensor(3, 5, 16), "seq_offsets": offsets, "total_len": 8},
        "addmm": {"input": tensor(24, seed=10), "mat1": x, "mat2": tensor(16, 24, seed=9)},
        "jagged_dense_bmm_broadcast_add": {**bmm, "bias": tensor(3, 24, seed=22)},
        "hstu_compute_uqvk": projection,
        "hstu_preprocess_and_attention": {
            **projection, "max_seq_len": 8, "seq_offsets": offsets, "attn_alpha": 0.25, "causal": True,
            "num_targets": targets, "max_attn_len": 0, "contextual_seq_len": 0, **dict.fromkeys(flags, False),
        },
        "hstu_compute_output": output,
    }  # fmt: skip


def calls():
    """Module, name, function and arguments by name of each."""
    known = given()
    for module, name in functions():
        function = getattr(module, name)
        parameters = inspect.signature(function).parameters
        yield module, name, function, {n: value for n, value in known[name].items() if n in parameters}


def tensors_of(result):
    """Tensors of a result, which is one or a tuple."""
    return [value for value in (result if isinstance(result, tuple) else (result,)) if value is not None]
