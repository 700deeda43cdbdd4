#!/usr/bin/env python3
"""Times heads with softmax beside PyTorch's FlashAttention of sequences of any length, on one GPU, in one process.

    bench/softmax.py [--sequences N] [--rows N] [--repeats N] > softmax.json

Causal, bf16, 4 heads of 128, sequences of equal length. Ways: "softmax", all heads with softmax; "half", two of them; "pointwise",
none; "flash", the kernels behind torch.nn.functional.scaled_dot_product_attention. Times are medians in ms, with the L2 cache emptied
before each launch. Ours and PyTorch's have to agree with float64 (bench/agreement.py).
"""

import argparse
import json
import sys

import torch
from agreement import Agreement
from row_peers import FLUSH_BYTES, report_alone, time_of, write_report

HEADS, COLUMNS, HOST_CYCLES = 4, 128, 4_000_000
SCALE = COLUMNS**-0.5


class Call:
    def __init__(self, sequences, rows):
        torch.manual_seed(0)
        self.sequences, self.rows = sequences, rows
        self.offsets = torch.arange(0, (sequences + 1) * rows, rows, device="cuda")
        self.q, self.k, self.v, self.dout = (torch.randn(sequences * rows, HEADS, COLUMNS, dtype=torch.bfloat16, device="cuda")
                                             for _ in range(4))

    def own(self, softmax_heads):
        import hstujit.torch  # registers the operators

        ops, common = torch.ops.hstujit, (self.offsets, self.rows, SCALE)
        return (lambda: [ops.hstu_attention(self.q, self.k, self.v, *common, num_softmax_heads=softmax_heads)],
                lambda: list(ops.hstu_attention_backward(self.q, self.k, self.v, self.dout, *common, num_softmax_heads=softmax_heads)[:3]))

    def flash(self):
        ops, offsets = torch.ops.aten, self.offsets.int()
        lengths = (offsets, offsets, self.rows, self.rows)
        out, sums, seed, unused, _ = ops._flash_attention_forward(self.q, self.k, self.v, *lengths, 0.0, True, False, scale=SCALE)
        return (lambda: [ops._flash_attention_forward(self.q, self.k, self.v, *lengths, 0.0, True, False, scale=SCALE)[0]],
                lambda: list(ops._flash_attention_backward(self.dout, self.q, self.k, self.v, out, sums, *lengths, 0.0, True, seed, unused,
                                                           scale=SCALE)))

    def reference(self):
        """Of all heads with softmax, one sequence at a time."""
        parts = {"forward": [], "gradients": [[], [], []]}
        seen = torch.ones(self.rows, self.rows, dtype=torch.bool, device="cuda").tril()
        for begin in range(0, self.sequences * self.rows, self.rows):
            q, k, v = (x[begin:begin + self.rows].double().requires_grad_() for x in (self.q, self.k, self.v))
            scores = (SCALE * torch.einsum("nhd,mhd->hnm", q, k)).masked_fill(~seen, -torch.inf)
            out = torch.einsum("hnm,mhd->nhd", scores.softmax(-1), v)
            gradients = torch.autograd.grad(out, (q, k, v), self.dout[begin:begin + self.rows].double())
            parts["forward"].append(out.detach())
            for part, gradient in zip(parts["gradients"], gradients):
                part.append(gradient)
        return {"forward": [torch.cat(parts["forward"])], "gradients": [torch.cat(part) for part in parts["gradients"]]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=64)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    report, agreement = report_alone(), Agreement()
    call = Call(options.sequences, options.rows)
    reference = call.reference()
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    ways = {"softmax": call.own(HEADS), "flash": call.flash(), "half": call.own(HEADS // 2), "pointwise": call.own(0)}
    result = {"rows": len(call.q)}
    for place, (direction, kind) in enumerate((("forward", "forward"), ("backward", "gradients"))):
        compared = result[direction] = {"name": direction}
        for way, launches in ways.items():
            is_softmax = way in ("softmax", "flash")  # the others compute something else, and are there for their times
            if not is_softmax or agreement.check(compared, way, "bf16", {kind: launches[place]()}, {kind: reference[kind]}):
                compared[way] = time_of(launches[place], flush, options.repeats, HOST_CYCLES)
        print(json.dumps(compared), file=sys.stderr, flush=True)
    write_report(report, [result])
    return agreement.exit_code()


if __name__ == "__main__":
    sys.exit(main())
