#!/usr/bin/env python3
"""Times the halves of a layer, those of bench/halves.json that are before and behind attention, in the ways that there are, on one GPU.

    bench/half_peers.py [--config FILE] [--generative-recommenders CHECKOUT] [--repeats N] > half_peers.json

Ways: hstujit.torch; "torch_compile", PyTorch's formulas, whose products are cuBLAS's; with a checkout of the public package
"triton", its operator, and "mix", its Triton kernels for what is done to rows with cuBLAS for the product. "forward" keeps what
backward needs; "training" is forward and backward with the gradients of rows and weights. Times are medians in ms, with the L2
cache emptied before each launch, and the time of the host hidden behind that. What fails is told on stderr and left out. A way that
differs from PyTorch's formulas in float64, all without dropout, is not timed (bench/agreement.py).
"""

import argparse
import functools
import pathlib
import sys

import torch
from agreement import Agreement
from layer_peers import HOST_CYCLES
from public_package import Formulas, TritonRows, import_from
from row_peers import DROPOUT, EPS, FLUSH_BYTES, outcome, read_instances, report_alone, time_of, write_report


def tensor(*shape, scale=1.0):
    return torch.empty(*shape, dtype=torch.bfloat16, device="cuda").normal_(std=scale).requires_grad_()


class Uqvk:
    """Norm, projection, silu of u, and the four parts."""

    def __init__(self, op):
        self.op, width = op, op["width"]
        columns = 2 * op["heads"] * (op["hidden_dim"] + op["attn_dim"])
        self.inputs = [tensor(op["rows"], width), tensor(width), tensor(width), tensor(width, columns, scale=width**-0.5), tensor(columns)]

    def public(self, function, dropout, **kernel):
        op = self.op
        x, norm_weight, norm_bias, weight, bias = self.inputs
        return lambda: function(x, norm_weight, norm_bias, EPS, op["heads"], op["attn_dim"], op["hidden_dim"], weight, bias, **kernel)

    def call(self, halves, dropout):
        op = self.op
        return lambda: halves.uqvk(*self.inputs, op["heads"], op["attn_dim"], op["hidden_dim"])

    def formula(self, inputs):
        return Formulas.uqvk_formula(*inputs, self.op["heads"], self.op["attn_dim"], self.op["hidden_dim"])


class Output:
    """Norm of the attention, times u, u and attention before it, dropout, projection, plus the row."""

    def __init__(self, op):
        self.op, self.both = op, bool(op.get("concat_u", True))
        hidden = op["heads"] * op["hidden_dim"]
        columns = hidden * (3 if self.both else 1)
        self.inputs = [tensor(op["rows"], hidden), tensor(op["rows"], hidden), tensor(op["rows"], op["width"]), tensor(hidden),
                       tensor(hidden), tensor(columns, op["width"], scale=columns**-0.5)]

    def public(self, function, dropout, **kernel):
        op = self.op
        attn, u, x, norm_weight, norm_bias, weight = self.inputs
        return lambda: (function(attn, u, x, norm_weight, norm_bias, EPS, weight, op["heads"], op["hidden_dim"], dropout, dropout > 0,
                                 self.both, self.both, "none", False, False, **kernel),)

    def call(self, halves, dropout):
        return lambda: (halves.output(*self.inputs, dropout, dropout > 0, self.both),)

    def formula(self, inputs):
        return Formulas.output_formula(*inputs, 0.0, False, self.both)


HALVES = {"hstu_compute_uqvk": Uqvk, "hstu_compute_output": Output}


def ways_of(half, own, public):
    """By name a function of the ratio of dropout that gives the launch."""
    name = half.op["op"]
    ways = {"hstujit": functools.partial(half.public, getattr(own, name)), "torch_compile": functools.partial(half.call, Formulas())}
    if public:
        kernels, functions, rows = public
        ways |= {"triton": functools.partial(half.public, getattr(functions, name), kernel=kernels.TRITON),
                 "mix": functools.partial(half.call, rows)}
    return ways


def time_way(launch, inputs, flush, repeats):
    gradients = [torch.randn_like(out) for out in launch()]

    def training():
        return torch.autograd.grad(launch(), inputs, gradients)

    for _ in range(2):
        training()
    forward, both = (time_of(way, flush, repeats, HOST_CYCLES) for way in (launch, training))
    return {"forward": forward, "training": both}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=pathlib.Path, default=pathlib.Path(__file__).parent / "halves.json")
    parser.add_argument("--generative-recommenders", metavar="CHECKOUT", help="a checkout of the public package")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    report = report_alone()
    from hstujit.torch import generative_recommenders as own  # whose functions have the public argument order

    public = None
    if options.generative_recommenders:
        checkout = options.generative_recommenders
        common, hstu_compute = import_from(checkout, "common", "ops.hstu_compute")
        public = common.HammerKernel, hstu_compute, TritonRows(checkout)
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    results, agreement = [], Agreement()
    for op in read_instances(options.config):
        if op["op"] not in HALVES:
            continue
        torch._dynamo.reset()
        half, result = HALVES[op["op"]](op), {"name": op["name"]}
        exact = [tensor.detach().double().requires_grad_() for tensor in half.inputs]
        reference = outcome(lambda: half.formula(exact), exact)  # noqa: B023
        for way, launch in ways_of(half, own, public).items():
            try:
                if agreement.check(result, way, "bf16", outcome(launch(dropout=0.0), half.inputs), reference):
                    result[way] = time_way(launch(dropout=DROPOUT), half.inputs, flush, options.repeats)
            except Exception as error:  # of one way; the others are still worth knowing
                print(f"{op['name']}, {way}: {type(error).__name__}: {error}", file=sys.stderr)
        results.append(result)
        del exact, reference
        torch.cuda.empty_cache()
    write_report(report, results)
    return agreement.exit_code()


if __name__ == "__main__":
    sys.exit(main())
