"""A call of each operator with sizes that are odd where the operator allows it: rows, widths, heads, max_seq_len."""

import torch
from torch_cases import tensor

LENGTHS = (3, 0, 4)
ROWS, HEADS, LONGEST, WIDTH = 7, 3, 5, 13


def offsets(*lengths):
    return torch.tensor([0, *lengths]).cumsum(0)


def padded_rows(dense, elements=8):
    """The same values in rows that begin at multiples of so many elements."""
    wide = dense.new_zeros(*dense.shape[:-1], -(-dense.shape[-1] // elements) * elements)
    wide[..., : dense.shape[-1]] = dense
    return wide[..., : dense.shape[-1]]


def odd_cases(dtype):
    """Operator, arguments, keywords."""
    sequences = offsets(*LENGTHS), LONGEST, 0.3
    targets, scales = torch.tensor([1, 0, 2]), tensor(ROWS, seed=1)
    rab = tensor(len(LENGTHS), 1, LONGEST, LONGEST, dtype=dtype)
    heads = {"heads": HEADS, "attn_dim": 7, "hidden_dim": 25}
    q, k, v = (tensor(ROWS, HEADS, width, dtype=dtype) for width in (7, 7, 25))
    shared = {"num_targets": targets, "rab": rab}
    yield "hstu_attention", (q, k, v, *sequences), {**shared, "attn_scale": scales}
    yield "delta_hstu_attention", (q[:3], k, v, offsets(*LENGTHS), LONGEST, 1, 0.3), shared
    columns = HEADS * 39
    yield "norm_attention", (tensor(ROWS, columns, dtype=dtype), *sequences), {
        **heads, **shared, "weight": tensor(columns), "bias": tensor(columns, seed=1)
    }  # fmt: skip
    yield from rows(dtype)
    yield from products(dtype)
    yield from layers(dtype, heads, {**shared, "rab": padded_rows(rab), "attn_scale": scales})
    yield "complete_cumsum", (torch.tensor(LENGTHS),), {}


def rows(dtype):
    x, other = tensor(ROWS, WIDTH, dtype=dtype), tensor(ROWS, WIDTH, seed=1, dtype=dtype)
    vectors, starts, targets = (
        (tensor(WIDTH, seed=2), tensor(WIDTH, seed=3)),
        offsets(*LENGTHS),
        torch.tensor([1, 0, 2]),
    )
    yield "layer_norm", (x, *vectors), {}
    yield "rms_norm", (x, vectors[0]), {}
    yield "swish_layer_norm", (x, *vectors), {}
    yield "hstu_norm_mul_dropout", (x, other, *vectors), {"concat_u": True, "concat_x": True}
    yield "silu", (x,), {}
    yield "bias_add", (x, vectors[0].to(dtype), 0.5), {}
    table, ages = tensor(5, WIDTH, seed=4), tensor(3, WIDTH, seed=5)
    yield "add_positional_embeddings", (x, table, 2.0, starts, targets), {}
    yield "add_timestamp_positional_embeddings", (
        x, table, ages, 2.0, 60.0, starts, torch.arange(ROWS) * 900, 1, targets
    ), {}  # fmt: skip
    sides = {"offsets_left": starts, "offsets_right": offsets(2, 1, 2)}
    yield "concat_2d_jagged", (x, tensor(5, WIDTH, dtype=dtype)), sides
    yield "split_2d_jagged", (tensor(12, WIDTH, dtype=dtype),), {**sides, "left_rows": ROWS}
    yield "jagged_dense_broadcast_add", (x, tensor(3, WIDTH, dtype=dtype), starts), {}
    yield "jagged_to_padded_dense", (x, starts, 3), {}
    yield "dense_to_jagged", (tensor(9, WIDTH, dtype=dtype), starts, 3), {"out_rows": ROWS}
    last = tensor(2, WIDTH, dtype=dtype), starts, offsets(1, 0, 1)
    yield "take_last_rows", (x, *last[1:]), {"out_rows": 2}
    yield "place_last_rows", last, {"out_rows": ROWS}
    caches = tensor(ROWS, 21, dtype=dtype), tensor(ROWS, 75, dtype=dtype)
    sizes = {"heads": HEADS, "attn_dim": 7, "hidden_dim": 25}
    deltas = (tensor(3, 21, dtype=dtype), tensor(3, 75, dtype=dtype))
    yield "construct_full_kv", (caches[0], deltas[0], starts, 1, caches[1], deltas[1]), sizes
    yield "update_kv_cache", (caches[0], offsets(1, 0, 2), offsets(2, 0, 2), caches[1]), {**sizes, "k_cache_rows": 3}


def products(dtype):
    x, y = tensor(ROWS, 23, dtype=dtype), tensor(ROWS, 37, dtype=dtype)
    of_sequences = offsets(*LENGTHS), LONGEST
    yield "addmm", (x, tensor(23, 37, dtype=dtype), 2.0, tensor(37, dtype=dtype), 0.5), {}
    yield "addmm_wgrad", (x, y, 2.0, 0.5), {}
    yield "jagged_dense_bmm_broadcast_add", (
        x, tensor(3, 23, 37, dtype=dtype), *of_sequences, tensor(3, 37, dtype=dtype)
    ), {}  # fmt: skip
    yield "jagged_jagged_bmm", (x, y, *of_sequences), {"bias": True}


def layers(dtype, heads, shared):
    wide, parts, width = 75, 192, 23

    def weights(*stacked):
        projections = tensor(*stacked, width, parts, dtype=dtype), tensor(*stacked, 3 * wide, width, dtype=dtype)
        return tensor(*stacked, width), *projections, tensor(*stacked, wide)

    def biases(*stacked):
        return tensor(*stacked, width, seed=1), tensor(*stacked, parts, dtype=dtype), tensor(*stacked, wide, seed=1)

    x, sequences = tensor(ROWS, width, dtype=dtype), (offsets(*LENGTHS), LONGEST, 0.3)
    yield "stu_layer", (x, *weights(), *sequences, *biases()), {**heads, **shared, "recompute_uvqk": False}
    yield "stu_stack", (x, *weights(2), *sequences, *biases(2)), {**heads, **shared}
    norm_weight, projection, output, gate_weight = weights()
    norm_bias, projection_bias, gate_bias = biases()
    of_projection = norm_weight, projection
    yield "hstu_compute_uqvk", (x, *of_projection, norm_bias, projection_bias), heads
    yield "hstu_preprocess_and_attention", (x, *of_projection, *sequences, norm_bias, projection_bias), {
        **heads, **shared
    }  # fmt: skip
    rows = tensor(ROWS, wide, dtype=dtype), tensor(ROWS, wide, seed=1, dtype=dtype)
    yield "hstu_compute_output", (*rows, x, gate_weight, output, gate_bias), {"heads": HEADS, "hidden_dim": 25}
    caches = tensor(4, 21, dtype=dtype), tensor(4, wide, dtype=dtype), offsets(2, 0, 2)
    of_new_rows = {name: value for name, value in shared.items() if name == "rab"}
    yield "cached_stu_layer", (
        x[:3], *of_projection, output, gate_weight, *caches, 1, offsets(3, 1, 3), LONGEST, 0.3, norm_bias,
        projection_bias, gate_bias
    ), {**heads, **of_new_rows, "full_k_rows": 7}  # fmt: skip
