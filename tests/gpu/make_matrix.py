#!/usr/bin/env python3
"""Writes the config of the correctness matrix that is run on a GPU: every mask x data type x head dimension.

    tests/gpu/make_matrix.py [--kind KIND,...] [--part I/N] > matrix.json
    hstujit prewarm --config matrix.json && hstujit run --config matrix.json --check --json > result.json

Lengths contain 0, 1, tile sizes +- 1 and one long sequence among tiny ones. Instances with alignment 8 have 16-bit data but
cannot use tensor maps, so they check the sm80 kernels on the same masks.
"""

import argparse
import itertools
import json
import pathlib
import sys

OPERATORS = pathlib.Path(__file__).resolve().parent.parent / "operators"

LENGTHS = [0, 1, 63, 64, 65, 127, 128, 129, 0, 191, 192, 193, 2, 700, 1, 0]
LONGEST = 1024

MASKS = {
    "causal": {},
    "targets": {"num_targets": 20},
    "window": {"max_attn_len": 50},
    "window_targets": {"max_attn_len": 50, "num_targets": 20},
    "context": {"contextual_seq_len": 7},
    "context_targets": {"contextual_seq_len": 7, "num_targets": 20},
    "context_window": {"contextual_seq_len": 7, "max_attn_len": 50},
    "context_window_targets": {"contextual_seq_len": 7, "max_attn_len": 50, "num_targets": 20},
    "window_full": {"max_attn_len": 50, "min_full_attn_seq_len": 30},
    "context_window_full_targets": {"contextual_seq_len": 7, "max_attn_len": 50, "min_full_attn_seq_len": 30, "num_targets": 20},
    "groups": {"num_targets": 20, "target_group_size": 4},
    "context_window_groups": {"contextual_seq_len": 7, "max_attn_len": 50, "num_targets": 20, "target_group_size": 3},
    "both_ways": {"causal": False},
    "both_ways_window_targets": {"causal": False, "max_attn_len": 50, "num_targets": 20},
    "both_ways_context_targets": {"causal": False, "contextual_seq_len": 7, "num_targets": 20},
    "none": {"full_mask": True},
    "semi_local": {"sla_k1": 40, "sla_k2": 25},
    "semi_local_context_targets": {"sla_k1": 40, "sla_k2": 25, "contextual_seq_len": 30, "num_targets": 20},
}
DIMENSIONS = [(32, 32), (40, 40), (64, 64), (96, 96), (128, 128), (192, 192), (256, 256), (64, 128), (128, 64), (256, 128)]
TYPES = {
    "bf16": {"dtype": "bf16"},
    "fp16": {"dtype": "fp16"},
    "tf32": {"dtype": "fp32", "precision": "tf32"},
    "fp32": {"dtype": "fp32", "precision": "ieee"},
    "bf16_sm80": {"dtype": "bf16", "alignment": 8},
    "fp16_sm80": {"dtype": "fp16", "alignment": 8},
}
SCORES = ["relu", "relu2", "sigmoid", "tanh", "gelu", "identity"]


# Rows of q where it has the last ones only: fewer than most sequences have, and more than some.
DELTA_LENGTHS = [65, 130, 1025, 3, 0, 64, 2000, 7]
DELTAS = {"delta1": 1, "delta64": 64, "delta70": 70, "jagged": [1, 0, 64, 65, 3, 17, 128, 80]}
DELTA_MASKS = ("causal", "context_window_full_targets", "groups", "both_ways_context_targets", "none", "semi_local_context_targets")


def instance(name, dims, **parameters):
    return {
        "name": name, "op": "hstu_attention", "heads": 2, "attn_dim": dims[0], "hidden_dim": dims[1],
        "max_seq_len": LONGEST, "lengths": LENGTHS, **parameters,
    }


def delta_instances():
    for mask in DELTA_MASKS:
        for kind, type_parameters in TYPES.items():
            for delta, rows in DELTAS.items():
                for dims in ((64, 64), (128, 128)) if delta != "delta64" else ((40, 40), (64, 128), (128, 64), (256, 256)):
                    yield instance(f"{mask}-{kind}-{delta}_{dims[0]}x{dims[1]}", dims, **MASKS[mask], **type_parameters) | {
                        "op": "delta_hstu_attention", "jagged_queries": delta == "jagged", "delta_len": rows,
                        "max_seq_len": 2048, "lengths": DELTA_LENGTHS}
        # One sequence: its columns are split over a cluster of CTAs.
        for rows in (1, 33, 100):
            yield instance(f"{mask}-bf16-alone{rows}", (128, 128), **MASKS[mask], dtype="bf16") | {
                "op": "delta_hstu_attention", "delta_len": rows, "max_seq_len": 2048, "lengths": [2000]}


def many_instances():
    """More sequences than a schedule looks at one by one: its items are pairs of row tiles then, where the mask lets them."""
    for mask in ("causal", "targets", "groups", "context", "window"):
        for kind in ("bf16", "fp16"):
            for dims in ((64, 64), (128, 128)):
                yield instance(f"{mask}-{kind}-many_{dims[0]}x{dims[1]}", dims, **MASKS[mask], **TYPES[kind]) | {"lengths": 3 * LENGTHS}


# More sequences than a list of work tiles sorts, so that its entries are groups of 32 neighbours, and of more.
CROWD = [130 if i % 53 == 17 else 30 if i % 7 == 3 else i % 3 for i in range(2100)]
GREAT_CROWD = [65 if i % 997 == 600 else 1 if i % 31 == 9 else 0 for i in range(66_000)]
# One sequence that has most of all tiles, so few for each CTA that they are no pairs.
LONELY = [i % 5 for i in range(60)] + [3000]


def crowd_instances():
    for mask in ("causal", "targets", "context", "window", "context_window_targets", "none"):
        for kind, dims in (("bf16", (64, 64)), ("fp16", (128, 128)), ("bf16", (64, 128))):
            batches = {"crowd": (CROWD, 256), "lonely": (LONELY, 4096)} | ({"great_crowd": (GREAT_CROWD, 256)} if mask == "causal" else {})
            for name, (lengths, longest) in batches.items():
                yield instance(f"{mask}-{kind}-{name}_{dims[0]}x{dims[1]}", dims, **MASKS[mask], **TYPES[kind]) | {
                    "max_seq_len": longest, "lengths": lengths}


def few_instances():
    """Batches so small that the columns of a tile are split over a cluster of CTAs: of eight, of three and of two."""
    for mask, parameters in MASKS.items():
        for kind, dims in (("bf16", (128, 128)), ("fp16", (64, 64)), ("bf16", (40, 40)), ("bf16", (64, 128))):
            for name, lengths in (("alone", [1000]), ("two", [65, 700]), ("three", [0, 129, 1024])):
                yield instance(f"{mask}-{kind}-{name}_{dims[0]}x{dims[1]}", dims, **parameters, **TYPES[kind]) | {
                    "lengths": lengths, "small_batches": True}


# A bias has a row for each of max_seq_len positions, whatever lengths are: short ones, few sequences.
BIAS_LENGTHS = [0, 1, 63, 65, 128, 200, 320]
BIAS_MASKS = ("causal", "context_window_full_targets", "groups", "both_ways_context_targets", "none", "semi_local_context_targets")
BIASES = {
    "rab1": {"rab_heads": 1},
    "rab2_rows": {"rab_heads": 2, "attn_scale": "rows"},
    "rab1_scalar": {"rab_heads": 1, "attn_scale": "scalar"},
    "rows": {"attn_scale": "rows"},
}


def bias_instances():
    """With a relative bias, of one head for all or one for each, and with factors of the scores."""
    for mask in BIAS_MASKS:
        for kind, type_parameters in TYPES.items():
            for bias, parameters in BIASES.items():
                for dims in ((64, 64), (128, 128)) if bias == "rab2_rows" else ((64, 128),) if bias == "rows" else ((40, 72),):
                    yield instance(f"{mask}-{kind}-{bias}_{dims[0]}x{dims[1]}", dims, **MASKS[mask], **type_parameters, **parameters) | {
                        "max_seq_len": 320, "lengths": BIAS_LENGTHS}
        for kind in ("bf16", "fp16"):
            yield instance(f"{mask}-{kind}-rab2_rows_jagged", (128, 128), **MASKS[mask], **TYPES[kind], **BIASES["rab2_rows"]) | {
                "op": "delta_hstu_attention", "jagged_queries": True, "delta_len": [1, 0, 64, 70], "max_seq_len": 320, "lengths": BIAS_LENGTHS}
            yield instance(f"{mask}-{kind}-rab2_rows_alone", (128, 128), **MASKS[mask], **TYPES[kind], **BIASES["rab2_rows"]) | {
                "lengths": [1000], "small_batches": True}
    # One position at the end of rows that no load takes together with its neighbour, and data of low alignment.
    for alignment in (2, 4):
        yield instance(f"bias-alignment{alignment}", (72, 40), dtype="bf16", alignment=alignment, **BIASES["rab2_rows"]) | {
            "max_seq_len": 320 + alignment // 2, "lengths": BIAS_LENGTHS}


ROW_WIDTHS = (1, 7, 8, 64, 100, 256, 1000, 1024, 4096, 16384)
ROW_COUNTS = (0, 1, 131, 5000)
ROW_TYPES = {
    "bf16": {"dtype": "bf16"},
    "bf16_weight": {"dtype": "bf16", "weight_dtype": "bf16"},
    "fp16": {"dtype": "fp16"},
    "fp16_weight": {"dtype": "fp16", "weight_dtype": "fp16"},
    "fp32": {"dtype": "fp32"},
}


def over_sequences():
    """Names of the operators whose instances have lengths."""
    schema = json.loads((OPERATORS.parent.parent / "hstujit.schema.json").read_text(encoding="utf-8"))
    entries = schema["properties"]["ops"]["items"]["anyOf"]
    return {entry["properties"]["op"]["const"] for entry in entries if "lengths" in entry["properties"]}


def row_operators(sequences=False):
    """Name and parameters of every operator of the row family, over sequences or not: what tests/operators/<op>/cases.json lists,
    each with each, or lists of such."""
    for file in sorted(OPERATORS.glob("*/cases.json")):
        operator = file.parent.name
        if (operator in over_sequences()) != sequences:
            continue
        listed = json.loads(file.read_text(encoding="utf-8"))
        lists = listed if isinstance(listed, list) else [listed]
        for chosen in (dict(zip(one, values)) for one in lists for values in itertools.product(*one.values())):
            suffix = [parameter if value is True else value for parameter, value in chosen.items() if value is True or isinstance(value, str)]
            yield "_".join([operator, *suffix]), {"op": operator, **chosen}


def row_instances():
    """Operators over rows: every width, type and option, each with every number of rows in turn. A check runs strided rows, too."""
    for width in ROW_WIDTHS:
        number = 0
        for kind, type_parameters in ROW_TYPES.items():
            for operator, parameters in row_operators():
                if width % parameters.get("heads", 1) != 0:
                    continue
                if kind.endswith("_weight") and (operator == "silu" or not parameters.get("weight", True) and not parameters.get("bias", False)):
                    continue  # there is nothing of that type
                rows = ROW_COUNTS[number % len(ROW_COUNTS)]
                number += 1
                # The float64 reference of the widest takes memory.
                rows = min(rows, 500) if width > 1024 else rows
                yield {"name": f"rows_{kind}-{operator}_{width}x{rows}", **parameters, **type_parameters, "width": width, "rows": rows}
    for alignment in (2, 4, 8):
        yield {"name": f"rows_alignment{alignment}", "op": "layer_norm", "width": 256, "alignment": alignment, "rows": 131}


SEQUENCE_WIDTHS = (1, 7, 8, 64, 100, 512, 1024, 2048)
# Sequences without rows, of one and of those about a tile; one; none with rows; one huge one among tiny ones.
SEQUENCE_LENGTHS = [LENGTHS, [3000], [0], [1, 0, 2, 1] * 10 + [700] + [1] * 9]
SEQUENCE_TYPES = ("bf16", "fp16", "fp32")


def sequence_instances():
    """Operators over rows of sequences: every width, type and option, each with every kind of lengths in turn."""
    for width in SEQUENCE_WIDTHS:
        number = 0
        for kind in SEQUENCE_TYPES:
            for operator, parameters in row_operators(sequences=True):
                if parameters.get("weight_dtype") == "bf16" and kind != "bf16":
                    continue
                lengths = SEQUENCE_LENGTHS[number % len(SEQUENCE_LENGTHS)]
                number += 1
                yield {"name": f"rows_{kind}-{operator}_{width}x{len(lengths)}", **parameters, "dtype": kind, "width": width,
                       "max_seq_len": max(1, *lengths, 0), "lengths": lengths}


PROGRAM_MASKS = ("causal", "context_window_groups", "both_ways_context_targets", "none")
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
}
LAYER_SHAPES = ((512, 4, 128, 128), (256, 2, 64, 64), (72, 3, 40, 72))  # width, heads, attn_dim, hidden_dim


def layer_instances():
    """Whole layers and their halves: every flag, with causal masks and those of every part of a mask."""
    of_output = ("dtype", "precision", "heads", "hidden_dim", "width", "norm", "weight_dtype", "group_norm", "concat_u", "concat_x", "dropout", "recompute_y", "training")
    of_uqvk = ("dtype", "precision", "heads", "attn_dim", "hidden_dim", "width", "norm", "weight_dtype", "uvqk_bias", "recompute_normed_x", "training", "typical_rows")
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
                    if name == "layer":
                        yield whole | {"name": f"{whole['name']}_stack_less_memory", "op": "stu_stack", "layers": 3, **less}
                if mask == "causal" and name in ("layer_rms_group", "layer_tf32", "layer_fp32"):
                    cached = {key: value for key, value in whole.items() if key not in ("training", "dropout", "recompute_normed_x", "recompute_uvqk", "recompute_y")}
                    yield cached | {"name": f"{whole['name']}_cached", "op": "cached_stu_layer"}
                if mask == "causal":
                    first = {key: value for key, value in whole.items() if key not in ("group_norm", "concat_u", "concat_x", "dropout", "recompute_y")}
                    yield first | {"name": f"{whole['name']}_first", "op": "hstu_preprocess_and_attention"}
                    second = {key: value for key, value in whole.items() if key in of_output}
                    uqvk = {key: whole[key] for key in of_uqvk if key in whole}
                    yield uqvk | {"name": f"{whole['name']}_uqvk", "op": "hstu_compute_uqvk", "rows": (1, 129, 4097, 0, 300, 1000)[number]}
                    yield second | {"name": f"{whole['name']}_second", "op": "hstu_compute_output", "rows": (0, 1, 129, 4097, 300, 1000)[number]}


# Lengths of a scan: none, one, about a tile of any config, and more tiles than there are chunks.
SCAN_COUNTS = (0, 1, 511, 512, 1023, 1024, 2047, 2048, 4095, 4096, 8191, 8192, 16383, 16384, 100000, 3000001)


def serving_instances():
    """Caches of keys and values, and offsets of lengths."""
    for number, kind in enumerate(SEQUENCE_TYPES):
        for heads, attn_dim, hidden_dim in ((1, 8, 8), (4, 64, 128), (8, 128, 128)):
            lengths = SEQUENCE_LENGTHS[number % len(SEQUENCE_LENGTHS)]
            for operator in ("update_kv_cache", "construct_full_kv"):
                yield {"name": f"serving_{kind}-{operator}_{heads}x{attn_dim}x{hidden_dim}", "op": operator, "dtype": kind,
                       "heads": heads, "attn_dim": attn_dim, "hidden_dim": hidden_dim,
                       "max_seq_len": max(1, *lengths, 0), "lengths": lengths}
    for kind in ("int32", "int64"):
        for count in SCAN_COUNTS:
            yield {"name": f"serving_{kind}-complete_cumsum_{count}", "op": "complete_cumsum", "dtype": kind, "rows": count}


# Rows about a tile of any config, one, none, and so many that each CTA has several tiles.
PRODUCT_ROWS = (0, 1, 63, 64, 65, 127, 128, 129, 255, 257, 300, 1000, 4097, 20000)
# Sums of one stage, of none that is full, of more than a pipeline has; columns of one tile, of a part of one, of many.
PRODUCT_SIZES = ((8, 8), (64, 64), (72, 200), (128, 256), (136, 248), (512, 512), (520, 1000), (1024, 264), (2056, 128), (256, 2048))


def suffix_of(parameters):
    """Of a product's name: what is added, or that a bias has a gradient."""
    return "".join("_" + (value if isinstance(value, str) else name) for name, value in parameters.items() if value)


def product_instances():
    """Products of matrices: every size, form of the addend and layout of the weights, each with some numbers of rows in turn."""
    number = 0
    for kinds, (k, n) in itertools.product((("bf16", "fp16"), ("tf32", "fp32")), PRODUCT_SIZES):
        for kind in kinds:
            for transposed in (False, True):
                operators = [("addmm", {"input": addend}) for addend in ("none", "vector", "matrix")]
                operators += [("addmm_wgrad", {"bias": bias}) for bias in (False, True)]
                for operator, parameters in operators:
                    rows = PRODUCT_ROWS[number % len(PRODUCT_ROWS)]
                    number += 3
                    name = f"product_{kind}-{operator}{suffix_of(parameters)}{'_transposed' if transposed else ''}"
                    if operator == "addmm":
                        yield {"name": f"{name}_silu_{rows}x{k}x{n}", "op": operator, **TYPES[kind], "k": k, "n": n, "rows": rows,
                               "transpose_mat2": transposed, "silu_columns": n // 2 + 1, **parameters}
                    yield {"name": f"{name}_{rows}x{k}x{n}", "op": operator, **TYPES[kind], "k": k, "n": n, "rows": rows,
                           "transpose_mat2": transposed, **parameters}
    yield from sequence_product_instances()


# Besides those of all: more sequences than lanes look at together, and more tiles than a GPU has multiprocessors.
SEQUENCE_PRODUCT_LENGTHS = [*SEQUENCE_LENGTHS, LENGTHS * 3, [257, 0, 255, 256, 1000] * 10, [64] * 3]


def sequence_product_instances():
    """Products of the rows of sequences: every size, kind of bias and layout, each with some lengths in turn."""
    number = 0
    for k, n in PRODUCT_SIZES:
        for kind, offsets in (("bf16", "int64"), ("fp16", "int32"), ("tf32", "int64"), ("fp32", "int32")):
            for transposed in (False, True):
                biases = {"none": {"bias": False}, "sequence": {}, "elementwise": {"elementwise": True}}
                operators = [("jagged_dense_bmm_broadcast_add", f"_{bias}", {"transpose_dense": transposed, **parameters})
                             for bias, parameters in biases.items()]
                operators += [("jagged_jagged_bmm", "_bias" if bias else "", {"transpose_out": transposed, "bias": bias})
                              for bias in (False, True)]
                for operator, suffix, parameters in operators:
                    lengths = SEQUENCE_PRODUCT_LENGTHS[number % len(SEQUENCE_PRODUCT_LENGTHS)]
                    number += 1
                    name = f"product_{kind}-{operator}{suffix}{'_transposed' if transposed else ''}_{len(lengths)}x{k}x{n}"
                    yield {"name": name, "op": operator, **TYPES[kind], "offsets_dtype": offsets, "k": k, "n": n,
                           "max_seq_len": max(lengths) or 1, "lengths": lengths, **parameters}


def has_backward(chosen):
    forward_alone = ("delta_hstu_attention", "update_kv_cache", "construct_full_kv", "complete_cumsum", "addmm_wgrad",
                     "jagged_jagged_bmm", "cached_stu_layer")
    return not (chosen["op"] in forward_alone or chosen.get("left_only") or chosen.get("silu_columns") or "small_batches" in chosen or chosen.get("training") is False)


def instances():
    yield from delta_instances()
    yield from row_instances()
    yield from sequence_instances()
    yield from program_instances()
    yield from serving_instances()
    yield from product_instances()
    yield from layer_instances()
    yield from bias_instances()
    yield from few_instances()
    yield from many_instances()
    yield from crowd_instances()
    for mask, mask_parameters in MASKS.items():
        for kind, type_parameters in TYPES.items():
            for dims in DIMENSIONS:
                yield instance(f"{mask}-{kind}-{dims[0]}x{dims[1]}", dims, **mask_parameters, **type_parameters)
    for score in SCORES:
        for kind, type_parameters in TYPES.items():
            yield instance(f"{score}-{kind}", (64, 64), score=score, **type_parameters)
    for alignment in (2, 4):
        yield instance(f"alignment{alignment}", (72, 40), dtype="bf16", alignment=alignment, num_targets=20)
    for kind, type_parameters in TYPES.items():
        yield instance(f"int32-{kind}", (64, 64), offsets_dtype="int32", num_targets=20, **type_parameters)


def small_instances():
    """For compute-sanitizer, which is slow: few masks, every kind, short sequences, all of Hopper's and Ampere's paths."""
    masks = ("causal", "context_window_groups", "semi_local_context_targets", "none")
    for chosen in instances():
        name = chosen["name"]
        if (name.endswith("-64x64") and name.split("-")[0] in masks) or name in (
                "causal-bf16-128x128", "none-bf16-256x256", "targets-fp16-64x128", "alignment2", "relu-bf16", "int32-bf16"):
            yield {**chosen, "max_seq_len": 256, "lengths": [0, 1, 65, 128, 129, 3, 0]}
        if name in ("causal-bf16-alone33", "context_window_full_targets-bf16-jagged_64x64", "groups-fp16-delta70_128x128",
                    "none-tf32-jagged_64x64"):
            yield {**chosen, "max_seq_len": 512, "lengths": [500] if "alone" in name else [0, 65, 128, 300]}
        if name in ("causal-bf16-alone_128x128", "semi_local_context_targets-fp16-two_64x64"):
            yield chosen | {"max_seq_len": 512, "lengths": [500]}
        if name in ("causal-bf16-rab2_rows_128x128", "groups-fp16-rab1_scalar_40x72", "none-tf32-rab1_scalar_40x72",
                    "context_window_full_targets-bf16-rab2_rows_alone"):
            yield {**chosen, "max_seq_len": 256, "lengths": [250] if "alone" in name else [0, 1, 65, 129, 256]}
        if name.startswith("layer") and "_72x" in name and "rows" not in chosen:
            yield {**chosen, "max_seq_len": 256, "lengths": [0, 1, 65, 128, 129, 3, 0]}
        if name in ("program_causal-bf16-layer_norm_64x64", "program_none-fp16-rms_norm_128x128"):
            yield {**chosen, "max_seq_len": 256, "lengths": [0, 1, 65, 128, 129, 3, 0]}
        if name.startswith(("rows_bf16-layer_norm_weight_bias_100x", "rows_fp16-rms_norm_weight_silu_1024x", "rows_fp32-layer_norm_weight_bias_7x",
                            "rows_bf16-hstu_norm_mul_dropout_group_norm_silu_u_concat_u_concat_x_dropout_100x")):
            yield {**chosen, "rows": 131}
        if name in ("serving_int32-complete_cumsum_8192", "serving_int64-complete_cumsum_100000"):
            yield chosen
        if name.startswith(("product_bf16-", "product_tf32-", "product_fp32-")) and chosen["k"] in (72, 136) or chosen["op"] == "addmm_wgrad" and chosen["k"] == 512:
            yield {**chosen, "max_seq_len": 256, "lengths": [0, 1, 65, 129, 256, 3, 0]} if "lengths" in chosen else {**chosen, "rows": 300}
        if name.startswith("serving_bf16-") and name.endswith("_4x64x128"):
            yield {**chosen, "max_seq_len": 256, "lengths": [0, 1, 65, 129, 256, 3, 0]}
        if name.startswith("rows_bf16-") and chosen["op"] in over_sequences() and chosen["width"] == 512:
            yield {**chosen, "max_seq_len": 256, "lengths": [0, 1, 65, 129, 256, 3, 0]}
        if name in ("causal-bf16-crowd_64x64", "causal-fp16-crowd_128x128"):
            yield {**chosen, "lengths": [65 if i % 100 == 17 else 0 for i in range(2100)]}
        if name == "causal-bf16-many_128x128":
            yield {**chosen, "max_seq_len": 256, "lengths": [0, 1, 65, 128, 129, 256, 3] * 5}


def repeated_instances():
    """To be launched again and again: masks whose tiles differ most, both 16-bit types, more tiles than a GPU has multiprocessors."""
    masks = ("causal", "context_window_groups", "semi_local_context_targets", "both_ways_context_targets", "none")
    names = {f"{mask}-{kind}-{dims}" for mask in masks for kind, dims in (("bf16", "64x64"), ("fp16", "128x128"))}
    names |= {"causal-fp16-many_64x64", "window-bf16-many_128x128"}
    return (chosen for chosen in instances() if chosen["name"] in names)


def repeated_others():
    """To be launched again and again: of each other operator what the sanitizers see, as long as it is, and all halves of layers."""
    small = {chosen["name"] for chosen in small_instances()}
    return (chosen for chosen in instances() if not chosen["op"].endswith("hstu_attention")
            and (chosen["name"] in small or chosen["op"].startswith("hstu_compute_")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", default="0/1", help="I/N: every N-th instance from the I-th on")
    parser.add_argument("--only", default="", help="only instances whose name contains this")
    parser.add_argument("--kind", default="", help=f"only instances of these kinds, before the part is taken: {', '.join(TYPES)}")
    parser.add_argument("--direction", choices=("forward", "backward"), default="forward",
                        help="backward: of the operators that have it")
    parser.add_argument("--sanitizer", action="store_true", help="the small selection for compute-sanitizer")
    parser.add_argument("--rows", action="store_true", help="operators over rows alone")
    parser.add_argument("--sequences", action="store_true", help="operators over rows of sequences alone")
    parser.add_argument("--serving", action="store_true", help="caches and offsets alone")
    parser.add_argument("--products", action="store_true", help="products of matrices alone")
    parser.add_argument("--layers", action="store_true", help="whole layers and their halves alone")
    parser.add_argument("--crowds", action="store_true", help="batches of thousands of sequences, and of one among tiny ones, alone")
    parser.add_argument("--repeated", action="store_true", help="the selection of attention for many launches of each")
    parser.add_argument("--repeated-others", action="store_true", help="that of all other operators")
    arguments = parser.parse_args()
    part, parts = (int(x) for x in arguments.part.split("/"))
    sources = {"rows": row_instances, "sequences": sequence_instances, "serving": serving_instances, "products": product_instances, "layers": layer_instances, "crowds": crowd_instances,
               "sanitizer": small_instances, "repeated": repeated_instances, "repeated_others": repeated_others}
    source = next((make for name, make in sources.items() if getattr(arguments, name)), instances)()
    if arguments.direction == "backward":
        source = ({**x, "directions": ["backward"]} for x in source if has_backward(x))
    if arguments.kind:
        source = (x for x in source if not set(arguments.kind.split(",")).isdisjoint(x["name"].split("-")))
    chosen = [x for x in list(source)[part::parts] if arguments.only in x["name"]]
    json.dump({"version": 1, "ops": chosen}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
