"""The matrix's instances of programs: a norm and attention, whole layers and their halves."""

from matrix_attention import MASKS, TYPES, instance

PROGRAM_MASKS = ("causal", "context_window_groups", "both_ways_context_targets", "contexts_window_full_targets", "none")
NORMS = {"layer_norm": {}, "layer_norm_plain": {"weight": False, "bias": False}, "rms_norm": {"norm": "rms_norm"}}


def program_instances():
    """A norm and attention in one launch: masks and types whose kernels differ most, every norm."""
    for mask in PROGRAM_MASKS:
        for kind, type_parameters in TYPES.items():
            for norm, norm_parameters in NORMS.items():
                dims = {"layer_norm": (64, 64), "layer_norm_plain": (40, 72), "rms_norm": (128, 128)}[norm]
                yield instance(f"program_{mask}-{kind}-{norm}_{dims[0]}x{dims[1]}", dims, **MASKS[mask], **type_parameters,
                               **norm_parameters) | {"op": "norm_attention"}


# Of a layer and its halves: what each flag changes, and heads whose widths differ.
LAYERS = {
    "layer": {},
    "layer_kept": {"recompute_normed_x": False, "recompute_uvqk": False, "recompute_y": False, "dropout": True},
    "layer_rms_group": {"norm": "rms_norm", "group_norm": True, "uvqk_bias": False, "concat_u": False},
    "layer_serving": {"training": False, "concat_x": False, "weight_dtype": "bf16"},
    "layer_tf32": {"dtype": "fp32", "precision": "tf32", "recompute_uvqk": False},
    "layer_fp32": {"dtype": "fp32", "precision": "ieee", "recompute_y": False},
    "layer_silu": {"silu_uvqk": True, "concat_u": False, "concat_x": False},
    "layer_silu_kept": {"silu_uvqk": True, "residual": False, "recompute_uvqk": False, "weight_dtype": "bf16"},
}
# Width, heads, attn_dim, hidden_dim; the last three are those of public models and odd ones, whose rows no tensor map loads.
LAYER_SHAPES = ((512, 4, 128, 128), (256, 2, 64, 64), (72, 3, 40, 72), (50, 1, 50, 50), (50, 2, 25, 25), (75, 3, 7, 25))


def layer_instances():
    """Whole layers and their halves: every flag, with causal masks and those of every part of a mask."""
    of_output = ("dtype", "precision", "heads", "hidden_dim", "width", "norm", "weight_dtype", "group_norm", "concat_u", "concat_x", "dropout", "recompute_y", "training")
    of_uqvk = ("dtype", "precision", "heads", "attn_dim", "hidden_dim", "width", "norm", "weight_dtype", "uvqk_bias", "recompute_normed_x", "training", "typical_rows", "silu_uvqk")
    for number, (name, parameters) in enumerate(LAYERS.items()):
        for width, heads, attn_dim, hidden_dim in LAYER_SHAPES:
            for mask in ("causal", "context_window_groups"):
                whole = instance(f"{name}_{mask}_{width}x{attn_dim}x{hidden_dim}", (attn_dim, hidden_dim), **MASKS[mask], **parameters)
                whole |= {"op": "stu_layer", "width": width, "heads": heads, "typical_rows": 4096}
                yield whole
                if mask == "causal":
                    less = {"backward_head_groups": heads, "recompute_attn": number % 2 == 1}
                    if name != "layer_serving":
                        yield whole | {"name": f"{whole['name']}_less_memory", **less}
                    yield whole | {"name": f"{whole['name']}_stack", "op": "stu_stack", "layers": 2 + number % 2}
                    if name in ("layer", "layer_fp32"):
                        yield whole | {"name": f"{whole['name']}_softmax", "num_softmax_heads": 1}
                    if name != "layer_silu_kept":  # the last rows of each sequence alone, some of none
                        targets = {"targets_only": True, "row_numbers": parameters.get("dropout", False), "delta_len": (1, 20, [1, 0, 64, 70])[number % 3]}
                        yield whole | {"name": f"{whole['name']}_targets"} | targets
                    if name == "layer":
                        yield whole | {"name": f"{whole['name']}_targets_contexts", "targets_only": True} | MASKS["contexts_window_full_targets"]
                        yield whole | {"name": f"{whole['name']}_contexts", **MASKS["contexts_window_full_targets"]}
                        yield whole | {"name": f"{whole['name']}_intervals", **MASKS["intervals"]}
                        yield whole | {"name": f"{whole['name']}_stack_less_memory", "op": "stu_stack", "layers": 3, **less}
                if mask == "causal" and name in ("layer_rms_group", "layer_tf32", "layer_fp32", "layer_silu"):
                    cached = {key: value for key, value in whole.items() if key not in ("training", "dropout", "recompute_normed_x", "recompute_uvqk", "recompute_y")}
                    yield cached | {"name": f"{whole['name']}_cached", "op": "cached_stu_layer"}
                if mask == "causal":
                    first = {key: value for key, value in whole.items() if key not in ("group_norm", "concat_u", "concat_x", "dropout", "recompute_y", "silu_uvqk", "residual")}
                    yield first | {"name": f"{whole['name']}_first", "op": "hstu_preprocess_and_attention"}
                    second = {key: value for key, value in whole.items() if key in of_output}
                    uqvk = {key: whole[key] for key in of_uqvk if key in whole}
                    yield uqvk | {"name": f"{whole['name']}_uqvk", "op": "hstu_compute_uqvk", "rows": (1, 129, 4097, 0, 300, 1000, 65, 500)[number]}
                    yield second | {"name": f"{whole['name']}_second", "op": "hstu_compute_output", "rows": (0, 1, 129, 4097, 300, 1000, 64, 2)[number]}
