#!/usr/bin/env python3
"""Draws attention instances at random, on which the constants of the cost models are fitted (bench/fit_costs.cpp).

    bench/random_cells.py --seed N [--count N] [--extremes | --short] [--exhaustive] [--only REGEX] > random_cells.json

--extremes draws only batches of tiny sequences, and of one long sequence among tiny ones; --short only thousands of sequences that
have at most 64 rows on average, though the longest may have many. --exhaustive has tuning time every candidate.

The same seed draws the same cells on every machine. They have nothing of bench/grid.json and bench/traffic.json, whose cells are
there to test what was fitted.
"""

import argparse
import json
import random
import re
import sys

from traffic import LARGEST_SEED, LAWS, lonely, uniform

MAX_SEQ_LENS = (64, 128, 200, 256, 512, 512, 768, 1024, 1024, 1500, 2048, 2048, 3000, 4096, 4096, 8192)
LEAST_ROWS, MOST_ROWS = 12_000, 300_000  # of a batch: launches of 20 us to some ms
LONGEST = (8192, 16384, 30000, 40000, 65536)  # of extremes
TINIEST = (16, 32, 48, 64, 100)
SHORT_MAX_SEQ_LENS = (128, 200, 256, 512, 512, 1024, 1024, 2048, 4096)
SHORT_MEAN = 64  # compiler/spec/short_sequences.h
MOST_PAIRS = 2e11  # of a row and a column, times columns of q and v: what one launch multiplies
DIMS = ((32, 32), (64, 64), (64, 64), (64, 64), (64, 128), (96, 96), (128, 128), (128, 128), (128, 64), (256, 256))


def draw_law(draw, longest):
    """A law of bench/traffic.py and what it takes, for lengths up to `longest`."""
    least = draw.choice((1, 5, 20))
    law = {"law": draw.choice(list(LAWS)), "min": least, "max": longest}
    if law["law"] == "power":
        law["exponent"] = round(draw.uniform(1.0, 1.5), 2)
    elif law["law"] == "log_normal":
        law |= {"median": round(longest * draw.uniform(0.05, 0.6)) + 1, "sigma": round(draw.uniform(0.4, 1.2), 2)}
    elif law["law"] == "two_humped":
        law |= {"low": round(longest * draw.uniform(0.02, 0.2)) + 1, "high": round(longest * draw.uniform(0.5, 0.95)) + 1,
                "share": round(draw.uniform(0.2, 0.9), 2), "sigma": 0.3}
    elif law["law"] == "one_over":
        law["tile"] = draw.choice([n for n in (32, 64, 128) if n < longest])
    return law


def lengths_of(draw, law):
    """As many lengths as a number of rows that is drawn has."""
    wanted, lengths = draw.uniform(LEAST_ROWS, MOST_ROWS), []
    while sum(lengths) < wanted and len(lengths) < 16384:
        lengths += [min(max(n, law["min"]), law["max"]) for n in LAWS[law["law"]](draw, law, 16)]
    return lengths


def cell(draw, place):
    longest = draw.choice(MAX_SEQ_LENS)
    attn_dim, hidden_dim = draw.choice(DIMS)
    op = {"name": f"random-{place}", "attn_dim": attn_dim, "hidden_dim": hidden_dim, "heads": draw.choice((1, 2, 4, 4, 8)), "max_seq_len": longest}
    if draw.random() < 0.25 and longest >= 256:
        op["max_attn_len"] = draw.choice([n for n in (64, 128, 256, 512, 1024) if 2 * n <= longest])
    if draw.random() < 0.15 and longest >= 128:
        op["contextual_seq_len"] = draw.choice((1, 16, 33))
    if draw.random() < 0.35 and longest >= 64:
        op["num_targets"] = draw.choice([n for n in (1, 10, 20, 64, 200) if 4 * n <= longest])
    op["lengths"] = lengths_of(draw, draw_law(draw, longest))
    return op


def extreme_cell(draw, place):
    op = {**cell(draw, place), "name": f"extreme-{place}"}
    for field in ("max_attn_len", "contextual_seq_len", "num_targets"):
        op.pop(field, None)
    tiniest = draw.choice(TINIEST)
    if draw.random() < 0.5:
        op["max_seq_len"] = tiniest
        op["lengths"] = uniform(draw, {"min": 1, "max": tiniest}, draw.randint(2000, 16384))
    else:
        op["max_seq_len"] = draw.choice(LONGEST)
        law = {"min": 1, "max": tiniest, "low": round(op["max_seq_len"] * 0.7), "high": op["max_seq_len"], "sequences": draw.randint(50, 1000)}
        op["lengths"] = lonely(draw, law, law["sequences"])
    return op


def short_cell(draw, place):
    op = {**cell(draw, place), "name": f"short-{place}"}
    for field in ("max_attn_len", "contextual_seq_len", "num_targets"):
        op.pop(field, None)
    while True:
        longest = draw.choice(SHORT_MAX_SEQ_LENS)
        law = draw_law(draw, longest)
        lengths = [min(max(n, law["min"]), longest) for n in LAWS[law["law"]](draw, law, draw.randint(1000, 8192))]
        if sum(lengths) <= SHORT_MEAN * len(lengths):
            return op | {"max_seq_len": longest, "lengths": lengths}


def work_of(op):
    window = op.get("max_attn_len", op["max_seq_len"])
    pairs = sum(n * min(n, 2 * window) / 2 for n in op["lengths"])
    return pairs * op["heads"] * (op["attn_dim"] + op["hidden_dim"])


def draw_cells(seed, count, drawn=cell):
    draw, cells = random.Random(seed), []
    while len(cells) < count:
        op = drawn(draw, len(cells))
        if work_of(op) <= MOST_PAIRS:
            cells.append(op)
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True, help=f"from 0 to {LARGEST_SEED}")
    parser.add_argument("--count", type=int, default=60)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--extremes", dest="drawn", action="store_const", const=extreme_cell, default=cell)
    kind.add_argument("--short", dest="drawn", action="store_const", const=short_cell)
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--only", default="", metavar="REGEX", help="of those drawn, only cells whose name has a match")
    options = parser.parse_args()
    config = {"version": 1}
    if options.exhaustive:
        config["tuning"] = {"exhaustive": True}
    config["defaults"] = {"op": "hstu_attention", "directions": ["forward", "backward"], "dtype": "bf16"}
    drawn = draw_cells(options.seed, options.count, options.drawn)
    config["ops"] = [op for op in drawn if re.search(options.only, op["name"])]
    json.dump(config, sys.stdout)
    print()


if __name__ == "__main__":
    main()
