#!/usr/bin/env python3
"""Times HSTU's bias of positions and times beside three ways to have it without an expression, on one GPU, in one process.

    bench/position_time.py [--sequences N] [--rows N] [--columns N] [--repeats N] > position_time.json

Causal, bf16, 4 heads, sequences of equal length, tables in fp32 with gradients. Ways: "own", `hstujit.torch.attention` with the score
of the preset; "dense", the same attention with `rab`, which PyTorch makes from the tables; "pytorch", all of it in PyTorch;
"compiled", that by torch.compile. "step" is forward and backward with the gradients of q, k, v and both tables. Times are medians in ms,
with the L2 cache emptied before each launch. Every way has to agree with float64 (bench/agreement.py).
"""

import argparse
import json
import sys

import torch
from agreement import Agreement
from row_peers import FLUSH_BYTES, report_alone, time_of, write_report

HEADS, BUCKETS, HOST_CYCLES = 4, 128, 4_000_000
SCORE = "silu(x + pos_w[col - row + {last}] + ts_w[int(log(1.0 + abs(ts[row + 1] - ts[col])) / 0.301)])"


class Call:
    def __init__(self, sequences, rows, columns, device="cuda"):
        torch.manual_seed(0)
        self.sequences, self.rows, self.scale = sequences, rows, columns**-0.5
        self.offsets = torch.arange(0, (sequences + 1) * rows, rows, device=device)
        make = lambda: torch.randn(sequences * rows, HEADS, columns, dtype=torch.bfloat16, device=device)
        self.leaves = [make().requires_grad_() for _ in range(3)]
        self.leaves += [torch.randn(size, device=device, requires_grad=True) for size in (2 * rows - 1, BUCKETS + 1)]
        self.dout = make()
        self.ts = torch.randint(0, 60, (sequences, rows), device=device).cumsum(1)  # seconds

    def own(self):
        import hstujit.torch as hst

        q, k, v, pos_w, ts_w = self.leaves
        operands = {"ts": hst.row(self.ts.flatten()), "pos_w": hst.table(pos_w), "ts_w": hst.table(ts_w)}
        return hst.attention(q, k, v, self.offsets, self.rows, alpha=self.scale, operands=operands,
                             score=SCORE.format(last=self.rows - 1))

    def dense(self):
        import hstujit.torch as hst

        q, k, v, pos_w, ts_w = self.leaves
        rab = (self.bias(pos_w, ts_w, self.ts) / self.scale).to(q.dtype).unsqueeze(1)
        return hst.attention(q, k, v, self.offsets, self.rows, alpha=self.scale, rab=rab)

    def bias(self, pos_w, ts_w, ts):
        """(sequences, rows, rows), what is added to x of each head."""
        row, column = torch.arange(self.rows, device=ts.device)[:, None], torch.arange(self.rows, device=ts.device)
        after = torch.cat([ts[:, 1:], torch.zeros_like(ts[:, :1])], 1)
        apart = (after[:, :, None] - ts[:, None, :]).abs()
        buckets = (torch.log(1.0 + apart.to(ts_w.dtype)) / 0.301).long().clamp(0, BUCKETS)
        return pos_w[column - row + self.rows - 1] + ts_w[buckets]

    def formula(self, q, k, v, pos_w, ts_w, ts):
        q, k, v = (x.unflatten(0, (-1, self.rows)).transpose(1, 2) for x in (q, k, v))
        x = q @ k.transpose(-1, -2) * self.scale + self.bias(pos_w, ts_w, ts).to(q.dtype).unsqueeze(1)
        seen = torch.ones(self.rows, self.rows, dtype=torch.bool, device=q.device).tril()
        weights = torch.where(seen, torch.nn.functional.silu(x), 0.0) / self.rows
        return (weights @ v).transpose(1, 2).flatten(0, 1)

    def pytorch(self):
        return self.formula(*self.leaves, self.ts)

    def reference(self):
        """One sequence at a time."""
        outs, gradients = [], None
        tables = [table.detach().double().requires_grad_() for table in self.leaves[3:]]
        for i in range(self.sequences):
            part = slice(i * self.rows, (i + 1) * self.rows)
            qkv = [x.detach()[part].double().requires_grad_() for x in self.leaves[:3]]
            out = self.formula(*qkv, *tables, self.ts[i:i + 1])
            found = torch.autograd.grad(out, [*qkv, *tables], self.dout[part].double())
            outs.append(out.detach())
            gradients = [[x] for x in found] if gradients is None else [[*all, x] for all, x in zip(gradients, found)]
        gradients = [torch.cat(x) for x in gradients[:3]] + [sum(x) for x in gradients[3:]]
        return {"forward": [torch.cat(outs)], "gradients": gradients}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=64)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--columns", type=int, default=128, help="of a head")
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    report, agreement = report_alone(), Agreement()
    call = Call(options.sequences, options.rows, options.columns)
    reference = call.reference()
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    name = f"{options.sequences} x {options.rows} x {options.columns}"
    result = {"name": name, "forward": {}, "step": {}}
    ways = {"own": call.own, "dense": call.dense, "pytorch": call.pytorch, "compiled": torch.compile(call.pytorch)}
    for way, attend in ways.items():
        step = lambda: torch.autograd.grad(attend(), call.leaves, call.dout)

        def forward():
            with torch.no_grad():
                return attend()

        if agreement.check(result, way, "bf16", {"forward": [forward()], "gradients": list(step())}, reference):
            result["forward"][way] = time_of(forward, flush, options.repeats, HOST_CYCLES)
            result["step"][way] = time_of(step, flush, options.repeats, HOST_CYCLES)
    print(json.dumps(result), file=sys.stderr, flush=True)
    write_report(report, [result])
    return agreement.exit_code()


if __name__ == "__main__":
    sys.exit(main())
