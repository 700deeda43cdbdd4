"""The matrix's instances of attention: masks, data types, head dimensions, biases, batches of every kind."""

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
    "contexts": {"num_contexts": 70},
    "contexts_window_full_targets": {"num_contexts": 70, "max_attn_len": 50, "min_full_attn_seq_len": 30, "num_targets": 20},
    "both_ways_contexts_targets": {"causal": False, "num_contexts": 7, "num_targets": 20},
    "semi_local_contexts_targets": {"sla_k1": 40, "sla_k2": 25, "num_contexts": 30, "num_targets": 20},
    "semi_local_context_targets": {"sla_k1": 40, "sla_k2": 25, "contextual_seq_len": 30, "num_targets": 20},
    "intervals": {"attn_func": 3},
    "intervals9": {"attn_func": 9},
}
DIMENSIONS = [(25, 25), (50, 36), (32, 32), (40, 40), (64, 64), (96, 96), (128, 128), (192, 192), (256, 256), (64, 128), (128, 64), (256, 128)]
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
DELTA_MASKS = ("causal", "context_window_full_targets", "contexts_window_full_targets", "groups", "both_ways_context_targets", "none", "semi_local_context_targets", "intervals")


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
    for mask in ("causal", "targets", "groups", "context", "contexts", "window", "intervals"):
        for kind in ("bf16", "fp16"):
            for dims in ((64, 64), (128, 128)):
                yield instance(f"{mask}-{kind}-many_{dims[0]}x{dims[1]}", dims, **MASKS[mask], **TYPES[kind]) | {"lengths": 3 * LENGTHS}


# More sequences than a list of work tiles sorts, so that its entries are groups of 32 neighbours, and of more.
CROWD = [130 if i % 53 == 17 else 30 if i % 7 == 3 else i % 3 for i in range(2100)]
GREAT_CROWD = [65 if i % 997 == 600 else 1 if i % 31 == 9 else 0 for i in range(66_000)]
# One sequence that has most of all tiles, so few for each CTA that they are no pairs.
LONELY = [i % 5 for i in range(60)] + [3000]


def crowd_instances():
    for mask in ("causal", "targets", "context", "window", "context_window_targets", "contexts_window_full_targets", "none", "intervals"):
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
BIAS_MASKS = ("causal", "context_window_full_targets", "contexts_window_full_targets", "groups", "both_ways_context_targets", "none", "semi_local_context_targets", "intervals")
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
            yield instance(f"{mask}-{kind}-rab1_scalar_delta70", (40, 72), **MASKS[mask], **TYPES[kind], **BIASES["rab1_scalar"]) | {
                "op": "delta_hstu_attention", "delta_len": 70, "max_seq_len": 320, "lengths": BIAS_LENGTHS}
            yield instance(f"{mask}-{kind}-rab2_rows_alone", (128, 128), **MASKS[mask], **TYPES[kind], **BIASES["rab2_rows"]) | {
                "lengths": [1000], "small_batches": True}
    # One position at the end of rows that no load takes together with its neighbour, and data of low alignment.
    for alignment in (2, 4):
        yield instance(f"bias-alignment{alignment}", (72, 40), dtype="bf16", alignment=alignment, **BIASES["rab2_rows"]) | {
            "max_seq_len": 320 + alignment // 2, "lengths": BIAS_LENGTHS}


def softmax_instances():
    """With softmax in the first head and in both, on their own, with a bias and factors, and of the last rows."""
    for mask in BIAS_MASKS:
        for kind, type_parameters in TYPES.items():
            for heads in (1, 2):
                softmax = {**MASKS[mask], **type_parameters, "num_softmax_heads": heads}
                for dims in ((64, 64), (40, 72)) if heads == 1 else ((128, 128), (256, 256)):
                    yield instance(f"{mask}-{kind}-softmax{heads}_{dims[0]}x{dims[1]}", dims, **softmax)
                for bias in ("rab2_rows", "rab1_scalar"):
                    yield instance(f"{mask}-{kind}-softmax{heads}_{bias}", (64, 128), **softmax, **BIASES[bias]) | {
                        "max_seq_len": 320, "lengths": BIAS_LENGTHS}
                yield instance(f"{mask}-{kind}-softmax{heads}_jagged", (64, 64), **softmax) | {
                    "op": "delta_hstu_attention", "jagged_queries": True, "delta_len": DELTAS["jagged"], "max_seq_len": 2048, "lengths": DELTA_LENGTHS}
    for alpha in (2, -2):  # powers that alone would be infinite
        yield instance(f"softmax_alpha{alpha}", (64, 64), dtype="bf16", num_softmax_heads=1, alpha=alpha)


def dropout_instances():
    """With dropout of the weights, in heads of both kinds, with a bias and factors, and in batches so small that CTAs share a tile."""
    for mask in BIAS_MASKS:
        for kind, type_parameters in TYPES.items():
            dropout = {**MASKS[mask], **type_parameters, "dropout": True}
            for dims in ((64, 64), (128, 128)):
                yield instance(f"{mask}-{kind}-dropout_{dims[0]}x{dims[1]}", dims, **dropout, seed_tensor=dims[0] == 128)
            for bias in ("rab2_rows", "rab1_scalar"):
                yield instance(f"{mask}-{kind}-dropout_{bias}", (64, 128), **dropout, **BIASES[bias]) | {"max_seq_len": 320, "lengths": BIAS_LENGTHS}
            if "attn_func" not in MASKS[mask]:
                yield instance(f"{mask}-{kind}-dropout_softmax", (64, 64), **dropout, num_softmax_heads=1)
                yield instance(f"{mask}-{kind}-dropout_softmax_rab", (40, 72), **dropout, num_softmax_heads=2, **BIASES["rab1_scalar"]) | {
                    "max_seq_len": 320, "lengths": BIAS_LENGTHS}
        yield instance(f"{mask}-bf16-dropout_alone", (128, 128), **MASKS[mask], dtype="bf16", dropout=True) | {"lengths": [1000], "small_batches": True}


def plain_instances():
    """Every mask with every data type and head dimension, scores, low alignments and int32 offsets."""
    for mask, mask_parameters in MASKS.items():
        for kind, type_parameters in TYPES.items():
            for dims in DIMENSIONS:
                yield instance(f"{mask}-{kind}-{dims[0]}x{dims[1]}", dims, **mask_parameters, **type_parameters)
    for score in SCORES:
        for kind, type_parameters in TYPES.items():
            yield instance(f"{score}-{kind}", (64, 64), score=score, **type_parameters)
    for kind, type_parameters in TYPES.items():
        yield instance(f"intervals-{kind}-heads_64x64", (64, 64), attn_func=5, attn_func_heads=2, **type_parameters)
    for alignment in (2, 4):
        yield instance(f"alignment{alignment}", (72, 40), dtype="bf16", alignment=alignment, num_targets=20)
    for kind, type_parameters in TYPES.items():
        yield instance(f"int32-{kind}", (64, 64), offsets_dtype="int32", num_targets=20, **type_parameters)
