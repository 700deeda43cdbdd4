"""A call of each operator with every kind of argument that it has, for tests that go through all of them."""

import torch

LENGTHS = (3, 0, 5)
OFFSETS = (0, 3, 3, 8)
ROWS = 8


def tensor(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1000 * seed + sum(shape))
    return torch.randn(*shape, generator=generator).to(dtype)


def offsets(*values):
    return torch.tensor(values or OFFSETS)


def attention(**more):
    q, k, v = tensor(ROWS, 2, 16), tensor(ROWS, 2, 16, seed=1), tensor(ROWS, 2, 8, seed=2)
    return (q, k, v, offsets(), 8, 0.25), {"precision": "ieee", **more}


def cases():
    """Name, operator, arguments, keywords. Tensors of floats are those that have gradients, where there is backward."""
    x, weight, bias = tensor(ROWS, 16), tensor(16, seed=1), tensor(16, seed=2)
    table, times = tensor(5, 16, seed=3), torch.tensor([5, 100, 900, 7, 9, 400, 4000, 10000])
    targets, right_offsets = torch.tensor([1, 0, 2]), offsets(0, 2, 5, 6)
    norm = {"weight": tensor(48, seed=4), "bias": tensor(48, seed=5)}
    yield "attention", "hstu_attention", *attention()
    yield (
        "attention_bias",
        "hstu_attention",
        *attention(num_targets=targets, rab=tensor(3, 1, 8, 8), attn_scale=tensor(ROWS, seed=6), max_attn_len=3),
    )
    yield "attention_scalar", "hstu_attention", *attention(attn_scale=tensor(1, seed=6), causal=False, score="gelu")
    yield (
        "attention_contexts",
        "hstu_attention",
        *attention(num_targets=targets, num_contexts=torch.tensor([2, 0, 3]), max_attn_len=1),
    )
    intervals = torch.arange(6 * ROWS, dtype=torch.int32).view(2, 3, ROWS) % 7
    yield "attention_intervals", "hstu_attention", *attention(attn_func=intervals)
    yield (
        "attention_softmax",
        "hstu_attention",
        *attention(num_targets=targets, rab=tensor(3, 1, 8, 8), num_softmax_heads=1),
    )
    last = (tensor(3, 2, 16), *attention()[0][1:4], 8, 1, 0.25)
    yield "delta", "delta_hstu_attention", last, {"precision": "ieee"}
    yield "delta_jagged", "delta_hstu_attention", (tensor(4, 2, 16), *last[1:5], 2, 0.25), {
        "precision": "ieee", "seq_offsets_q": offsets(0, 2, 2, 4), "rab": tensor(3, 1, 8, 8), "num_softmax_heads": 1
    }  # fmt: skip
    yield "layer_norm", "layer_norm", (x, weight, bias), {}
    yield "layer_norm_plain", "layer_norm", (x,), {}
    yield "rms_norm", "rms_norm", (x, weight), {"silu": True}
    yield "swish_layer_norm", "swish_layer_norm", (x, weight, bias, 1e-3), {}
    yield "norm_mul", "hstu_norm_mul_dropout", (x, tensor(ROWS, 16, seed=7), weight, bias), {"concat_u": True}
    yield "norm_mul_dropout", "hstu_norm_mul_dropout", (
        x, tensor(ROWS, 16, seed=7), weight[:2], bias[:2], 1e-5, 0.25, 3, 4
    ), {"group_norm": True, "heads": 2}  # fmt: skip
    yield "norm_mul_seed_tensor", "hstu_norm_mul_dropout", (x, tensor(ROWS, 16, seed=7), weight, bias), {
        "dropout_ratio": 0.25, "seed_tensor": torch.tensor([3]), "offset": 4, "row_numbers": torch.arange(ROWS) * 3
    }  # fmt: skip
    yield "positions", "add_positional_embeddings", (x, table, 2.0, offsets(), targets), {}
    yield "times", "add_timestamp_positional_embeddings", (
        x, table, tensor(4, 16, seed=8), 2.0, 60.0, offsets(), times, 1, targets
    ), {"query_time": torch.tensor([1000, 1000, 11000])}  # fmt: skip
    yield "concat", "concat_2d_jagged", (x, tensor(6, 16)), {"offsets_left": offsets(), "offsets_right": right_offsets}
    yield "concat_dense", "concat_2d_jagged", (x, tensor(6, 16)), {
        "offsets_left": offsets(), "max_len_right": 2, "n_prefix_from_right": 1
    }  # fmt: skip
    yield "split", "split_2d_jagged", (tensor(14, 16),), {
        "offsets_left": offsets(), "offsets_right": right_offsets, "left_rows": 8
    }  # fmt: skip
    yield "split_dense", "split_2d_jagged", (tensor(14, 16),), {"offsets_left": offsets(), "max_len_right": 2}
    yield "broadcast_add", "jagged_dense_broadcast_add", (x, tensor(3, 16), offsets()), {}
    yield "padded", "jagged_to_padded_dense", (x, offsets(), 4), {"padding_value": 1.5}
    yield "dense", "dense_to_jagged", (tensor(15, 16), offsets(), 5), {"out_rows": 8}
    yield "take_last", "take_last_rows", (x, offsets(), offsets(0, 2, 2, 5)), {"out_rows": 5}
    yield "place_last", "place_last_rows", (tensor(5, 16), offsets(), offsets(0, 2, 2, 5)), {"out_rows": 8}
    yield "norm_attention", "norm_attention", (tensor(ROWS, 48), offsets(), 8, 0.25), {
        **norm, "heads": 1, "attn_dim": 16, "hidden_dim": 16, "precision": "ieee"
    }  # fmt: skip
    yield "full_kv", "construct_full_kv", (tensor(ROWS, 16), tensor(3, 16), offsets(), 1, x, tensor(3, 16)), {
        "attn_dim": 16, "hidden_dim": 16
    }  # fmt: skip
    yield "kv_cache", "update_kv_cache", (tensor(14, 16), offsets(), right_offsets, tensor(14, 16, seed=1)), {
        "attn_dim": 16, "hidden_dim": 16, "k_cache_rows": 8
    }  # fmt: skip
    yield "cumsum", "complete_cumsum", (torch.tensor(LENGTHS),), {}
    half, weights = x.half(), tensor(16, 24, seed=9).half()
    yield "addmm", "addmm", (half, weights, 2.0, tensor(24, seed=10).half(), 0.5), {}
    yield "addmm_matrix", "addmm", (half, weights, 0.25, tensor(ROWS, 24, seed=12).half(), 2.0), {}
    transposed = {"transpose_mat2": True}
    yield "addmm_transposed", "addmm", (half, tensor(24, half.size(1), seed=13).half(), 0.25), transposed
    yield "addmm_plain", "addmm", (half, weights, 2.0), {}
    yield "addmm_wgrad", "addmm_wgrad", (half, tensor(ROWS, 24, seed=11).half(), 2.0), {}
    yield "addmm_wgrad_bias", "addmm_wgrad", (half, tensor(ROWS, 24, seed=11).half(), 2.0, 0.5), {}
    dense, row = tensor(3, 16, 24, seed=21).half(), tensor(3, 24, seed=22).half()
    yield "bmm", "jagged_dense_bmm_broadcast_add", (half, dense, offsets(), 8, row), {}
    yield "bmm_elementwise", "jagged_dense_bmm_broadcast_add", (
        half, dense, offsets(), 8, tensor(ROWS, 24, seed=23).half()
    ), {"elementwise": True}  # fmt: skip
    yield "bmm_transposed", "jagged_dense_bmm_broadcast_add", (
        half, tensor(3, 24, 16, seed=24).half(), offsets(), 8
    ), {"transpose_dense": True}  # fmt: skip
    yield "jagged_jagged", "jagged_jagged_bmm", (half, tensor(ROWS, 24, seed=11).half(), offsets(), 8), {}
    right = tensor(ROWS, 24, seed=11).half()
    yield "jagged_jagged_bias", "jagged_jagged_bmm", (half, right, offsets(), 8), {"bias": True}
    of_fp32 = x, tensor(16, 24, seed=9), 2.0, tensor(24, seed=10), 0.5
    yield "addmm_fp32", "addmm", of_fp32, {"precision": "ieee"}
    yield "addmm_wgrad_fp32", "addmm_wgrad", (x, tensor(ROWS, 24, seed=11), 2.0), {"precision": "ieee"}

    yield from layers()


def layers():
    """A layer, its halves and what they are made of, mostly in 16-bit types: (8, 16), 2 heads of 16 and 8 columns."""
    heads = {"heads": 2, "attn_dim": 16, "hidden_dim": 8}
    x, attn, gate = (tensor(ROWS, 16, seed=seed).half() for seed in range(12, 15))
    weights = tensor(16, seed=1), tensor(16, seed=2)
    uvqk, output = 0.25 * tensor(16, 96, seed=15).half(), 0.25 * tensor(48, 16, seed=16).half()
    yield "silu", "silu", (x,), {}
    yield "bias_add", "bias_add", (x.float(), tensor(16, seed=5), 0.5), {}
    yield "compute_output", "hstu_compute_output", (attn, gate, x, weights[0], output, weights[1]), {
        "heads": 2, "hidden_dim": 8
    }  # fmt: skip
    yield "compute_output_kept", "hstu_compute_output", (attn, gate, x, weights[0], output, weights[1]), {
        "heads": 2, "hidden_dim": 8, "recompute_y": False
    }  # fmt: skip
    yield "preprocess", "hstu_preprocess_and_attention", (
        x, weights[0], uvqk, offsets(), 8, 0.25, weights[1], tensor(96, seed=17).half()
    ), heads  # fmt: skip
    yield "uqvk", "hstu_compute_uqvk", (x, weights[0], uvqk, weights[1], tensor(96, seed=17).half()), heads
    yield "uqvk_kept", "hstu_compute_uqvk", (x, weights[0], uvqk, weights[1], tensor(96, seed=17).half()), {
        **heads, "recompute_normed_x": False
    }  # fmt: skip
    layer = x, weights[0], uvqk, output, weights[0] + 1, offsets(), 8, 0.25, weights[1], None, weights[1]
    yield "layer", "stu_layer", layer, heads
    wide = [v.float() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in layer]
    yield "layer_fp32", "stu_layer", tuple(wide), {**heads, "precision": "ieee"}
    yield "layer_kept", "stu_layer", layer, {
        **heads, "recompute_normed_x": False, "recompute_uvqk": False, "recompute_y": False
    }  # fmt: skip
    yield "layer_less_memory", "stu_layer", layer, {**heads, "recompute_attn": True, "backward_head_groups": 2}

    yield "layer_targets", "stu_layer", layer, {
        **heads, "seq_offsets_q": offsets(0, 1, 1, 4), "max_delta_len": 3, "out_rows": 4
    }  # fmt: skip

    def stacked(*shape, seed, scale=1.0):
        return scale * tensor(2, *shape, seed=seed)

    stack = (
        x, stacked(16, seed=1), stacked(16, 96, seed=15, scale=0.1).half(),
        stacked(48, 16, seed=16, scale=0.05).half(), 1 + stacked(16, seed=2), offsets(), 8, 0.25, stacked(16, seed=3),
        None, stacked(16, seed=4)
    )  # fmt: skip
    yield "stack", "stu_stack", stack, heads
    yield "stack_less_memory", "stu_stack", stack, {**heads, "recompute_attn": True}
    caches = tensor(ROWS, 32, seed=18).half(), tensor(ROWS, 16, seed=19).half()
    yield "cached_layer", "cached_stu_layer", (
        tensor(3, 16, seed=20).half(), weights[0], uvqk, output, weights[1], *caches, offsets(), 1,
        offsets(0, 4, 5, 11), 8, 0.25, weights[1], None, weights[1]
    ), {**heads, "full_k_rows": 11}  # fmt: skip


FORWARD_ONLY = {
    "cached_stu_layer",
    "construct_full_kv",
    "update_kv_cache",
    "complete_cumsum",
    "addmm_wgrad",
    "jagged_jagged_bmm",
}


def with_gradients(op, arguments, keywords):
    """The same with leaves that have gradients, and the names or positions of those."""
    wanted = op not in FORWARD_ONLY

    def leaf(value):
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.clone().requires_grad_() if is_float and wanted else value

    return tuple(map(leaf, arguments)), {name: leaf(value) for name, value in keywords.items()}
