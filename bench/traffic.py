#!/usr/bin/env python3
"""Draws the lengths of bench/traffic.json or another file of cells, and writes them as a config that `hstujit tune`, `bench` and
`run` read.

    bench/traffic.py [--cells bench/models.json] [--seed N] [--redraw] [--only REGEX] > traffic_config.json

Cells with a seed have the same lengths in every run. --seed draws the others, and with --redraw all; without it the time of day does,
and stderr says what it was. Names of what is drawn end in "_seed_N", so that nobody takes them for one cell.

Laws; what lies outside of min..max becomes the nearer of both:
  power       P(n) in proportion to n ** -exponent
  log_normal  the logarithm is normal, with this median and sigma
  two_humped  a share around low, the others around high, each log-normal with sigma
  one_over    one row more than a multiple of tile
  uniform     each length as likely as another
  lonely      one sequence of low to high rows among others of min to max rows, each length as likely as another
"""

import argparse
import json
import math
import pathlib
import random
import re
import sys
import time

TRAFFIC = pathlib.Path(__file__).parent / "traffic.json"
LARGEST_SEED = 2**31 - 1


def power(draw, law, count):
    values = range(law["min"], law["max"] + 1)
    return draw.choices(values, [n ** -law["exponent"] for n in values], k=count)


def log_normal(draw, law, count):
    return [round(draw.lognormvariate(math.log(law["median"]), law["sigma"])) for _ in range(count)]


def two_humped(draw, law, count):
    medians = (law["low"] if draw.random() < law["share"] else law["high"] for _ in range(count))
    return [round(draw.lognormvariate(math.log(median), law["sigma"])) for median in medians]


def one_over(draw, law, count):
    most = (law["max"] - 1) // law["tile"]
    least = -(-(law["min"] - 1) // law["tile"])
    return [1 + law["tile"] * draw.randint(least, most) for _ in range(count)]


def uniform(draw, law, count):
    return [draw.randint(law["min"], law["max"]) for _ in range(count)]


def lonely(draw, law, count):
    others = uniform(draw, law, count - 1)
    others.insert(draw.randint(0, len(others)), draw.randint(law["low"], law["high"]))
    return others


LAWS = {law.__name__: law for law in (power, log_normal, two_humped, one_over, uniform)}


def lengths_of(law, seed):
    """Lengths of the law's sequences, the same for the same seed on every machine."""
    draw = random.Random(seed)
    if law["law"] == "lonely":
        return lonely(draw, law, law["sequences"])
    lengths = LAWS[law["law"]](draw, law, law["sequences"])
    return [min(max(length, law["min"]), law["max"]) for length in lengths]


def longest_of(law):
    return law["high"] if law["law"] == "lonely" else law["max"]


def instances(traffic, seed, redraw=False):
    """The cells as instances of a config: those without a seed of their own are drawn with `seed` and their place; all with redraw."""
    for place, cell in enumerate(traffic["cells"]):
        cell = {**traffic["defaults"], **cell}
        law = cell["lengths"]
        drawn = redraw or "seed" not in law
        lengths = lengths_of(law, seed + place if drawn else law["seed"])
        name = f"{cell['name']}_seed_{seed}" if drawn else cell["name"]
        fields = {name: value for name, value in cell.items() if name != "of"}
        yield {**fields, "name": name, "max_seq_len": longest_of(law), "lengths": lengths}


def read_traffic(path=TRAFFIC):
    return json.loads(re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=pathlib.Path, default=TRAFFIC, metavar="FILE", help="default: bench/traffic.json")
    parser.add_argument("--redraw", action="store_true", help="draw lengths of the cells that have a seed, too")
    parser.add_argument("--seed", type=int, help=f"of the cells that are drawn anew, from 0 to {LARGEST_SEED}")
    parser.add_argument("--only", default="", metavar="REGEX", help="only cells whose name has a match")
    options = parser.parse_args()
    seed = int(time.time()) % LARGEST_SEED if options.seed is None else options.seed
    if not 0 <= seed <= LARGEST_SEED:
        parser.error(f"--seed is {seed}; allowed: 0 to {LARGEST_SEED}")
    print(f"seed {seed}", file=sys.stderr)
    chosen = [op for op in instances(read_traffic(options.cells), seed, options.redraw) if re.search(options.only, op["name"])]
    json.dump({"version": 1, "ops": chosen}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
