#!/usr/bin/env python3
"""Writes the config of the correctness matrix that is run on a GPU: every mask x data type x head dimension.

    tests/gpu/make_matrix.py [--kind KIND,...] [--part I/N] > matrix.json
    hstujit prewarm --config matrix.json && hstujit run --config matrix.json --check --json > result.json

Lengths contain 0, 1, tile sizes +- 1 and one long sequence among tiny ones. Instances with alignment 8 have 16-bit data but
cannot use tensor maps, so they check the sm80 kernels on the same masks.
"""

import argparse
import json
import sys

from matrix_attention import TYPES, bias_instances, crowd_instances, delta_instances, dropout_instances, few_instances, many_instances, plain_instances, softmax_instances
from matrix_layers import layer_instances, program_instances
from matrix_masks import mask_instances
from matrix_products import product_instances
from matrix_rows import over_sequences, row_instances, sequence_instances, serving_instances
from matrix_scores import score_instances


def has_backward(chosen):
    forward_alone = ("update_kv_cache", "construct_full_kv", "complete_cumsum", "addmm_wgrad", "jagged_jagged_bmm", "cached_stu_layer")
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
    yield from softmax_instances()
    yield from dropout_instances()
    yield from few_instances()
    yield from many_instances()
    yield from crowd_instances()
    yield from plain_instances()


def last_row_instances():
    """Attention of the last rows of sequences, and layers of them, alone."""
    return (chosen for chosen in instances() if chosen["op"] == "delta_hstu_attention" or chosen.get("targets_only"))


def small_instances():
    """For compute-sanitizer, which is slow: few masks, every kind, short sequences, all of Hopper's and Ampere's paths."""
    masks = ("causal", "context_window_groups", "contexts_window_full_targets", "semi_local_context_targets", "none", "intervals")
    for chosen in instances():
        name = chosen["name"]
        if (name.endswith("-64x64") and name.split("-")[0] in masks) or name in (
                "causal-bf16-32x32", "context_window-fp16-32x32", "causal-bf16-128x128", "none-bf16-256x256", "targets-fp16-64x128",
                "alignment2", "relu-bf16", "int32-bf16"):
            yield {**chosen, "max_seq_len": 256, "lengths": [0, 1, 65, 128, 129, 3, 0]}
        if name in ("causal-bf16-alone33", "context_window_full_targets-bf16-jagged_64x64", "contexts_window_full_targets-fp16-jagged_64x64", "groups-fp16-delta70_128x128",
                    "none-tf32-jagged_64x64", "intervals-bf16-jagged_64x64", "intervals-bf16-heads_64x64"):
            yield {**chosen, "max_seq_len": 512, "lengths": [500] if "alone" in name else [0, 65, 128, 300]}
        if name in ("causal-bf16-alone_128x128", "semi_local_context_targets-fp16-two_64x64"):
            yield chosen | {"max_seq_len": 512, "lengths": [500]}
        if name in ("causal-bf16-rab2_rows_128x128", "groups-fp16-rab1_scalar_40x72", "none-tf32-rab1_scalar_40x72",
                    "context_window_full_targets-bf16-rab2_rows_alone"):
            yield {**chosen, "max_seq_len": 256, "lengths": [250] if "alone" in name else [0, 1, 65, 129, 256]}
        if name in ("causal-bf16-softmax1_64x64", "groups-fp16-softmax2_128x128", "none-tf32-softmax1_40x72", "causal-fp32-softmax2_rab2_rows", "causal-bf16-softmax1_rab1_scalar",
                    "contexts_window_full_targets-bf16-softmax1_jagged"):
            yield {**chosen, "max_seq_len": 512 if "jagged" in name else 256, "lengths": [0, 1, 65, 129, 256, 3, 0, 7]}
        if name in ("causal-bf16-dropout_64x64", "context_window_full_targets-fp16-dropout_128x128", "none-tf32-dropout_rab2_rows", "causal-bf16-dropout_softmax",
                    "groups-bf16-dropout_softmax_rab", "causal-bf16-dropout_alone"):
            yield {**chosen, "max_seq_len": 256, "lengths": [250] if "alone" in name else [0, 1, 65, 129, 256, 3, 0, 7]}
        if name.startswith("layer") and ("_72x" in name or "_50x25" in name) and "rows" not in chosen:
            yield {**chosen, "max_seq_len": 256, "lengths": [0, 1, 65, 128, 129, 3, 0]}
        if name in ("program_causal-bf16-layer_norm_64x64", "program_none-fp16-rms_norm_128x128"):
            yield {**chosen, "max_seq_len": 256, "lengths": [0, 1, 65, 128, 129, 3, 0]}
        if name.startswith(("rows_bf16-layer_norm_weight_bias_100x", "rows_fp16-rms_norm_weight_silu_1024x", "rows_fp32-layer_norm_weight_bias_7x",
                            "rows_bf16-hstu_norm_mul_dropout_group_norm_silu_u_concat_u_concat_x_dropout_100x")):
            yield {**chosen, "rows": 131}
        if name in ("serving_int32-complete_cumsum_8192", "serving_int64-complete_cumsum_100000"):
            yield chosen
        if name.startswith(("product_bf16-", "product_tf32-", "product_fp32-")) and chosen["k"] in (25, 50, 72, 75, 136) or chosen["op"] == "addmm_wgrad" and chosen["k"] == 512:
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
    parser.add_argument("--part", default="0/1", help="I/N: of all that the other options leave, every N-th instance from the I-th on")
    parser.add_argument("--only", default="", help="only instances whose name contains this")
    parser.add_argument("--kind", default="", help=f"only instances of these kinds: {', '.join(TYPES)}")
    parser.add_argument("--direction", choices=("forward", "backward"), default="forward",
                        help="backward: of the operators that have it")
    parser.add_argument("--sanitizer", action="store_true", help="the small selection for compute-sanitizer")
    parser.add_argument("--last-rows", action="store_true", help="attention of the last rows of sequences alone")
    parser.add_argument("--rows", action="store_true", help="operators over rows alone")
    parser.add_argument("--sequences", action="store_true", help="operators over rows of sequences alone")
    parser.add_argument("--serving", action="store_true", help="caches and offsets alone")
    parser.add_argument("--products", action="store_true", help="products of matrices alone")
    parser.add_argument("--layers", action="store_true", help="whole layers and their halves alone")
    parser.add_argument("--crowds", action="store_true", help="batches of thousands of sequences, and of one among tiny ones, alone")
    parser.add_argument("--masks", action="store_true", help="masks that users write alone")
    parser.add_argument("--scores", action="store_true", help="scores that users write alone")
    parser.add_argument("--seed", type=int, default=1, help="of the masks or scores that are drawn")
    parser.add_argument("--count", type=int, default=120, help="how many are drawn")
    parser.add_argument("--repeated", action="store_true", help="the selection of attention for many launches of each")
    parser.add_argument("--repeated-others", action="store_true", help="that of all other operators")
    arguments = parser.parse_args()
    part, parts = (int(x) for x in arguments.part.split("/"))
    sources = {"last_rows": last_row_instances, "rows": row_instances, "sequences": sequence_instances, "serving": serving_instances, "products": product_instances, "layers": layer_instances, "crowds": crowd_instances,
               "sanitizer": small_instances, "repeated": repeated_instances, "repeated_others": repeated_others}
    sources["masks"] = lambda: mask_instances(arguments.seed, arguments.count)
    sources["scores"] = lambda: score_instances(arguments.seed, arguments.count)
    source = next((make for name, make in sources.items() if getattr(arguments, name)), instances)()
    if arguments.direction == "backward":
        source = ({**x, "directions": ["backward"]} for x in source if has_backward(x))
    if arguments.kind:
        source = (x for x in source if not set(arguments.kind.split(",")).isdisjoint(x["name"].split("-")))
    chosen = [x for x in source if arguments.only in x["name"]][part::parts]
    json.dump({"version": 1, "ops": chosen}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
