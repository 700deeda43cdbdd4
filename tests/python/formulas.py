"""The formulas of docs/ops-*.md for operators that are programs, in PyTorch.

They share nothing with the library, not even the order of its steps: in float64, with gradients from PyTorch's
autograd, they are what a program's wiring is compared with. Arguments have the names and the order of the operators.
"""

import torch

SCORES = {"silu": torch.nn.functional.silu, "relu2": lambda x: x.relu().square(), "tanh": torch.tanh}
ACTIVATIONS = {"none": lambda u: u, "silu": torch.nn.functional.silu, "sigmoid": torch.sigmoid}


def sequences(offsets):
    """First row and end of each sequence."""
    return list(zip(offsets.tolist(), offsets.tolist()[1:]))


def norm(x, weight, bias, eps, kind="layer_norm"):
    if kind == "layer_norm":
        x = x - x.mean(-1, keepdim=True)
    n = x / (x.square().mean(-1, keepdim=True) + eps).sqrt()
    n = n if weight is None else n * weight
    return n if bias is None else n + bias


def attention(
    q, k, v, seq_offsets, max_seq_len, alpha, num_targets=None, rab=None, attn_scale=None, scaling_seqlen=0,
    causal=True, score="silu", query_offsets=None, num_softmax_heads=0
):  # fmt: skip
    """hstu_attention; with ``query_offsets`` delta_hstu_attention, whose q has the last rows of each sequence."""
    outs = []
    query_offsets = seq_offsets if query_offsets is None else query_offsets
    factors = torch.full((len(q),), 1 / (scaling_seqlen if scaling_seqlen > 0 else max_seq_len), dtype=q.dtype)
    factors = factors if attn_scale is None else attn_scale.expand(len(q))
    for b, ((begin, end), (first, last)) in enumerate(zip(sequences(seq_offsets), sequences(query_offsets))):
        n, rows = end - begin, last - first
        products = torch.einsum("ihd,jhd->hij", q[first:last], k[begin:end])
        if rab is not None:
            heads = q.shape[1] // rab.shape[1]
            products = products + rab[b].repeat_interleave(heads, 0)[:, n - rows : n, :n]
        weights = SCORES[score](alpha * products) * factors[first:last, None]
        valid = torch.ones(n, n, dtype=torch.bool)
        ids = torch.arange(n)
        if num_targets is not None:
            ids = ids.clamp(max=n - int(num_targets[b]))
        if causal:
            valid = (ids[:, None] > ids[None, :]) | torch.eye(n, dtype=torch.bool)
        weights = torch.where(valid[n - rows :], weights, 0)
        softmax = torch.where(valid[n - rows :], alpha * products[:num_softmax_heads], -torch.inf).softmax(-1)
        weights = torch.cat([softmax, weights[num_softmax_heads:]])
        outs.append(torch.einsum("hij,jhd->ihd", weights, v[begin:end]))
    return torch.cat(outs)


def gate(attn, u, weight, bias, eps, *, kind, group_norm, heads, activation, silu_u, concat_u, concat_x):
    """hstu_norm_mul_dropout without dropout."""
    if group_norm:
        grouped = attn.unflatten(1, (heads, -1))
        normed = norm(grouped, weight[:, None], None if bias is None else bias[:, None], eps, kind).flatten(1)
        activation = "silu" if silu_u else activation
    else:
        normed = norm(attn, weight, bias, eps, kind)
    parts = [ACTIVATIONS["silu" if silu_u else "none"](u)] if concat_u else []
    return torch.cat([*parts, *([attn] if concat_x else []), ACTIVATIONS[activation](u) * normed], 1)


def uvqk_of(x, weight, bias, uvqk_weight, uvqk_bias, eps, kind, heads, attn_dim, hidden_dim, silu=False):
    """The projection's columns u, and v, q and k by heads."""
    uvqk = norm(x, weight, bias, eps, kind) @ uvqk_weight
    uvqk = uvqk if uvqk_bias is None else uvqk + uvqk_bias
    uvqk = torch.nn.functional.silu(uvqk) if silu else uvqk
    wide, narrow = heads * hidden_dim, heads * attn_dim
    u, v, q, k = uvqk.split([wide, wide, narrow, narrow], 1)
    return u, *(columns.unflatten(1, (heads, -1)) for columns in (v, q, k))


def stu_layer(
    x, input_norm_weight, uvqk_weight, output_weight, output_norm_weight, seq_offsets, max_seq_len, alpha,
    input_norm_bias=None, uvqk_bias=None, output_norm_bias=None, num_targets=None, rab=None, attn_scale=None,
    eps=1e-5, scaling_seqlen=0, *, heads, attn_dim, hidden_dim, norm="layer_norm", group_norm=False, concat_u=True,
    concat_x=True, causal=True, score="silu", num_softmax_heads=0, silu_uvqk=False, residual=True,
    seq_offsets_q=None, max_delta_len=None, out_rows=None, **memory
):  # fmt: skip
    """With ``seq_offsets_q`` the last rows of each sequence."""
    u, v, q, k = uvqk_of(
        x, input_norm_weight, input_norm_bias, uvqk_weight, uvqk_bias, eps, norm, heads, attn_dim, hidden_dim,
        silu_uvqk
    )  # fmt: skip
    attn = attention(
        q, k, v, seq_offsets, max_seq_len, alpha, num_targets, rab, attn_scale, scaling_seqlen, causal, score,
        num_softmax_heads=num_softmax_heads
    ).flatten(1)  # fmt: skip
    y = gate(
        attn, u, output_norm_weight, output_norm_bias, eps, kind=norm, group_norm=group_norm, heads=heads,
        activation="none" if silu_uvqk else "silu", silu_u=concat_u and not silu_uvqk, concat_u=concat_u,
        concat_x=concat_x
    )  # fmt: skip
    out = y @ output_weight + (x if residual else 0)
    return out if seq_offsets_q is None else take_last_rows(out, seq_offsets, seq_offsets_q)


def stu_stack(x, uvqk_weight, **arguments):
    """Layers in order, each with its part of the weights and biases. All else they share."""
    weights = {name: value for name, value in arguments.items() if name.endswith(("_weight", "_bias"))}
    shared = {name: value for name, value in arguments.items() if name not in weights}
    for layer, projection in enumerate(uvqk_weight):
        x = stu_layer(x, uvqk_weight=projection, **{name: w[layer] for name, w in weights.items()}, **shared)
    return x


def norm_attention(
    x, seq_offsets, max_seq_len, alpha, weight=None, bias=None, eps=1e-5, *, heads, attn_dim, hidden_dim,
    norm="layer_norm", **keywords
):  # fmt: skip
    wide, narrow = heads * hidden_dim, heads * attn_dim
    normed = globals()["norm"](x, weight, bias, eps, norm)
    v, q, k = (part.unflatten(1, (heads, -1)) for part in normed.split([wide, narrow, narrow], 1))
    return attention(q, k, v, seq_offsets, max_seq_len, alpha, **keywords)


def hstu_compute_uqvk(
    x, input_norm_weight, uvqk_weight, input_norm_bias=None, uvqk_bias=None, eps=1e-5, *, heads, attn_dim, hidden_dim,
    norm="layer_norm", silu_uvqk=False, **memory
):  # fmt: skip
    u, *others = uvqk_of(
        x, input_norm_weight, input_norm_bias, uvqk_weight, uvqk_bias, eps, norm, heads, attn_dim, hidden_dim,
        silu_uvqk
    )  # fmt: skip
    return torch.cat([u if silu_uvqk else torch.nn.functional.silu(u), *(part.flatten(1) for part in others)], 1)


def hstu_preprocess_and_attention(
    x, input_norm_weight, uvqk_weight, seq_offsets, max_seq_len, alpha, input_norm_bias=None, uvqk_bias=None, eps=1e-5,
    *, heads, attn_dim, hidden_dim, norm="layer_norm", recompute_uvqk=True, recompute_normed_x=True, **keywords
):  # fmt: skip
    u, v, q, k = uvqk_of(
        x, input_norm_weight, input_norm_bias, uvqk_weight, uvqk_bias, eps, norm, heads, attn_dim, hidden_dim
    )
    return torch.nn.functional.silu(u), attention(q, k, v, seq_offsets, max_seq_len, alpha, **keywords)


def hstu_compute_output(
    attn, u, x, output_norm_weight, output_weight, output_norm_bias=None, eps=1e-5, *, heads, hidden_dim,
    norm="layer_norm", group_norm=False, concat_u=True, concat_x=True, silu_u=False, mul_u_activation="none", **memory
):  # fmt: skip
    y = gate(
        attn, u, output_norm_weight, output_norm_bias, eps, kind=norm, group_norm=group_norm, heads=heads,
        activation=mul_u_activation, silu_u=silu_u, concat_u=concat_u, concat_x=concat_x
    )  # fmt: skip
    return x + y @ output_weight


def concat_2d_jagged(left, right, offsets_left, offsets_right, n_prefix_from_right=0):
    parts = []
    for (begin, end), (first, last) in zip(sequences(offsets_left), sequences(offsets_right)):
        rows = right[first:last]
        parts += [rows[:n_prefix_from_right], left[begin:end], rows[n_prefix_from_right:]]
    return torch.cat(parts)


def split_2d_jagged(values, offsets_left, offsets_right, n_prefix_to_right=0, left_rows=None):
    left, right, begin = [], [], 0
    for nl, nr in zip(offsets_left.diff().tolist(), offsets_right.diff().tolist()):
        prefix, rows = min(n_prefix_to_right, nr), values[begin : begin + nl + nr]
        left.append(rows[prefix : prefix + nl])
        right += [rows[:prefix], rows[prefix + nl :]]
        begin += nl + nr
    return torch.cat(left), torch.cat(right)


def jagged_to_padded_dense(values, seq_offsets, max_len, padding_value=0.0):
    dense = []
    for begin, end in sequences(seq_offsets):
        rows = values[begin : min(end, begin + max_len)]
        dense += [rows, rows.new_full((max_len - len(rows), rows.shape[1]), padding_value)]
    return torch.cat(dense)


def dense_to_jagged(dense, seq_offsets, max_len, out_rows=None):
    rows = []
    for b, n in enumerate(seq_offsets.diff().tolist()):
        own = dense[b * max_len : b * max_len + min(n, max_len)]
        rows += [own, own.new_zeros(n - len(own), own.shape[1])]
    return torch.cat(rows)


def take_last_rows(values, seq_offsets, seq_offsets_q, out_rows=None):
    counts = seq_offsets_q.diff().tolist()
    return torch.cat([values[end - count : end] for (_, end), count in zip(sequences(seq_offsets), counts)])


def place_last_rows(values, seq_offsets, seq_offsets_q, out_rows=None):
    rows = []
    for (begin, end), (first, last) in zip(sequences(seq_offsets), sequences(seq_offsets_q)):
        rows += [values.new_zeros(end - begin - (last - first), values.shape[1]), values[first:last]]
    return torch.cat(rows)


def addmm(mat1, mat2, alpha, input=None, beta=None, transpose_mat2=False):
    out = alpha * (mat1 @ (mat2.T if transpose_mat2 else mat2))
    return out if input is None else out + beta * input


def jagged_dense_bmm_broadcast_add(
    jagged, dense, seq_offsets, max_seq_len, bias=None, elementwise=False, transpose_dense=False
):
    out = []
    for b, (begin, end) in enumerate(sequences(seq_offsets)):
        own = jagged[begin:end] @ (dense[b].T if transpose_dense else dense[b])
        added = 0 if bias is None else bias[begin:end] if elementwise else bias[b]
        out.append(own + added)
    return torch.cat(out)


def update_kv_cache(k, kv_caching_offsets, delta_offsets, v, **sizes):
    firsts = (kv_caching_offsets + delta_offsets).tolist()
    counts = kv_caching_offsets.diff().tolist()
    return tuple(torch.cat([rows[first : first + n] for first, n in zip(firsts, counts)]) for rows in (k, v))


def construct_full_kv(k_cache, delta_k, kv_caching_offsets, delta_size, v_cache, delta_v, **sizes):
    def joined(cache, delta):
        parts = []
        for b, (begin, end) in enumerate(sequences(kv_caching_offsets)):
            parts += [cache[begin:end], delta[b * delta_size : (b + 1) * delta_size]]
        return torch.cat(parts)

    return joined(k_cache, delta_k), joined(v_cache, delta_v)


def cached_stu_layer(
    x, input_norm_weight, uvqk_weight, output_weight, output_norm_weight, k_cache, v_cache, kv_caching_offsets,
    max_delta_len, seq_offsets, max_seq_len, alpha, input_norm_bias=None, uvqk_bias=None, output_norm_bias=None,
    num_targets=None, rab=None, attn_scale=None, eps=1e-5, scaling_seqlen=0, *, heads, attn_dim, hidden_dim,
    norm="layer_norm", group_norm=False, full_k_rows=None, num_softmax_heads=0, silu_uvqk=False, residual=True
):  # fmt: skip
    u, v, q, k = uvqk_of(
        x, input_norm_weight, input_norm_bias, uvqk_weight, uvqk_bias, eps, norm, heads, attn_dim, hidden_dim,
        silu_uvqk
    )  # fmt: skip
    full_k, full_v = construct_full_kv(k_cache, k.flatten(1), kv_caching_offsets, max_delta_len, v_cache, v.flatten(1))
    new_rows = torch.arange(len(seq_offsets)) * max_delta_len
    attn = attention(
        q, full_k.unflatten(1, (heads, -1)), full_v.unflatten(1, (heads, -1)), seq_offsets, max_seq_len, alpha,
        num_targets, rab, attn_scale, scaling_seqlen, query_offsets=new_rows, num_softmax_heads=num_softmax_heads
    ).flatten(1)  # fmt: skip
    y = gate(
        attn, u, output_norm_weight, output_norm_bias, eps, kind=norm, group_norm=group_norm, heads=heads,
        activation="none" if silu_uvqk else "silu", silu_u=not silu_uvqk, concat_u=True, concat_x=True
    )  # fmt: skip
    return full_k, full_v, y @ output_weight + (x if residual else 0)
