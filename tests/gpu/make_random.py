#!/usr/bin/env python3
"""Writes a config of random instances: any mask, data type, width, score, bias and factors, forward, backward and of last rows.

    tests/gpu/make_random.py --seed S [--count N] > random.json
    tests/gpu/make_random.py --known > known.json      # those that once were told wrong and are right, with --seed 0
    hstujit run --config random.json --check --seed S --json > result.json

A seed gives the same config every time. Lengths are 0, 1, tile sizes +- 1, a few rows alone, and one long sequence among tiny ones.
"""

import argparse
import json
import random
import sys

from matrix_attention import MASKS, SCORES, TYPES

TILE_LENGTHS = [0, 1, 2, 3, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257]
BIAS_LENGTHS = [n for n in TILE_LENGTHS if n <= 193]
COUNTS = ("num_targets", "max_attn_len", "min_full_attn_seq_len", "contextual_seq_len", "num_contexts", "sla_k1", "sla_k2", "target_group_size")


def width(draw):
    return 8 * draw.choice([draw.randint(1, 32), draw.choice([4, 8, 16, 32])])


def lengths_of(draw, bias):
    tiles = BIAS_LENGTHS if bias else TILE_LENGTHS
    kind = draw.randrange(5)
    if kind == 0:
        return [draw.randint(1, 4) for _ in range(draw.randint(1, 3))]
    if kind == 1:
        return [draw.choice(tiles) or 1]
    if kind == 2 and not bias:
        lengths = [draw.randint(0, 3) for _ in range(draw.randint(2, 8))]
        lengths[draw.randrange(len(lengths))] = draw.randint(500, 1100)
        return lengths
    return [draw.choice(tiles) for _ in range(draw.randint(2, 8))]


def instance(draw, number):
    mask, kind = draw.choice(sorted(MASKS)), draw.choice(sorted(TYPES))
    parameters = {name: draw.randint(1, 100) if name in COUNTS else value for name, value in MASKS[mask].items()}
    score = draw.choice(["silu", "silu", "silu", *SCORES])
    way = draw.choice(["forward", "backward", "delta"])
    bias = draw.randrange(4) == 0
    heads = draw.choice([1, 2, 4])
    lengths = lengths_of(draw, bias)
    attn_dim = width(draw)
    result = {
        "name": f"{mask}-{kind}-{score}-{way}-{number}", "op": "delta_hstu_attention" if way == "delta" else "hstu_attention",
        "heads": heads, "attn_dim": attn_dim, "hidden_dim": draw.choice([attn_dim, width(draw)]), "score": score,
        "alpha": draw.choice([1, 1, 1, 0.25, -1]) / attn_dim, "lengths": lengths,
        "max_seq_len": max(1, *lengths) + draw.choice([0, 0, 1, 50 if bias else 1000]), **parameters, **TYPES[kind],
    }
    if "attn_func" in parameters:
        result["attn_func"] = draw.choice([1, 3, 5, 9, 31])
    if bias:
        result["rab_heads"] = draw.choice([1, heads])
    if draw.randrange(4) == 0:
        result["attn_scale"] = draw.choice(["rows", "scalar"])
    if "attn_func" in parameters and "rab_heads" not in result and "attn_scale" not in result:
        result["attn_func_heads"] = draw.choice([1, heads])
    if draw.randrange(6) == 0:
        result["num_softmax_heads"] = draw.randint(1, heads)
    if way != "delta" and draw.randrange(6) == 0:
        result["dropout"], result["seed_tensor"] = True, draw.randrange(2) == 0
    if way == "delta":
        result["directions"] = ["forward", "backward"]
        result["jagged_queries"] = draw.randrange(2) == 0
        result["delta_len"] = [draw.randint(0, 80) for _ in lengths] if result["jagged_queries"] else draw.choice([1, 3, 17, 64, 65, 130])
    elif way == "backward":
        result["directions"] = ["backward"]
    elif draw.randrange(4) == 0:
        result["small_batches"] = True
    return result


def known_instances():
    """A dot product of one row that cancels, as tf32 has it."""
    return [{"name": "causal-tf32-silu-one_row", "op": "hstu_attention", "directions": ["forward", "backward"], "attn_dim": 168, "hidden_dim": 48,
             "max_seq_len": 1, "lengths": [1], **TYPES["tf32"]}]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="of the config")
    parser.add_argument("--count", type=int, default=32, help="instances")
    parser.add_argument("--known", action="store_true", help="instances that were told wrong once, and no random ones")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    chosen = known_instances() if arguments.known else [instance(draw, f"{arguments.seed}_{i}") for i in range(arguments.count)]
    json.dump({"version": 1, "ops": chosen}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
