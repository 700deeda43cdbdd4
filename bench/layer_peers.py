#!/usr/bin/env python3
"""Times whole layers through PyTorch: STULayer of hstujit.torch, and those that there are with a checkout of the public package.

    bench/layer_peers.py --generative-recommenders CHECKOUT [--config FILE] [--op REGEX] [--repeats N] > layer_peers.json

Ways: hstujit.torch; "triton", the public layer by its Triton kernels, without TMA (public_package.py says why); "mix", its attention between halves of its
Triton kernels for what is done to rows and cuBLAS for products; "torch_compile", its attention between halves that
torch.compile fuses. All layers have the same weights and rows, and take turns in one process. "forward" keeps what backward
needs; "training" is forward and backward with the gradients of rows and weights. Times are medians in ms, with the L2 cache emptied before each
launch, and the time of the host hidden behind that. "peak_mib" is PyTorch's memory at the peak of a training step, above
rows and weights. Each way's result and gradients in eval mode are compared with a layer in float64: "difference" has the distances, over
the norm of that. A way that differs by more than bf16 allows is not timed (bench/agreement.py).
"""

import argparse
import pathlib
import re
import sys

import references
import torch
from agreement import Agreement
from public_package import Formulas, TritonRows, mixed_layer, public_layer
from row_peers import FLUSH_BYTES, outcome, read_instances, report_alone, time_of, write_report

OWN_FIELDS = ("backward_head_groups", "recompute_attn")  # of a config, that the public layer lacks
HOST_CYCLES = 8_000_000  # of the GPU: longer than the host needs to enqueue a training step


def lengths_of(op, folder):
    given = op["lengths"]
    if isinstance(given, dict):
        given = [int(line) for line in (folder / given["file"]).read_text(encoding="utf-8").split()]
    return torch.tensor(given, device="cuda")


def batch_of(lengths, op):
    """Offsets, the longest sequence, and targets of each."""
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    return offsets, op["max_seq_len"], lengths.clamp(max=op["num_targets"])


def layer(module, op):
    """A layer of either package, which have the same configuration."""
    config = module.STULayerConfig(
        embedding_dim=op["width"], num_heads=op["heads"], hidden_dim=op["hidden_dim"], attention_dim=op["attn_dim"],
        output_dropout_ratio=0.1, **{flag: op.get(flag, True) for flag in ("recompute_normed_x", "recompute_uvqk", "recompute_y")},
        **{field: op[field] for field in OWN_FIELDS if field in op and module.__name__.startswith("hstujit")})
    torch.manual_seed(1)
    return module.STULayer(config).cuda().train()


def leaves_of(x, layer):
    """What gradients are compared of, in one order for layers of both packages."""
    return [x, *(value for _, value in sorted(layer.named_parameters()))]


def reference_of(op, layer, x, batch):
    """Result and gradients of the layer's weights in float64."""
    weights, rows = references.rounded(layer, x.dtype), x.detach().double().requires_grad_()
    out = lambda: references.layer(rows, weights, *batch, op["heads"], op["attn_dim"], op["hidden_dim"])  # noqa: E731
    found = outcome(out, [rows, *(weights[name] for name in sorted(weights))])
    return {kind: [tensor.detach() for tensor in tensors] for kind, tensors in found.items()}


def time_layer(chosen, x, lengths, batch, flush, repeats):
    gradient = torch.randn_like(x)
    leaves = [x, *chosen.parameters()]

    def forward():
        return chosen(x, lengths, *batch)

    def training():
        return torch.autograd.grad(forward(), leaves, gradient)

    for _ in range(2):
        training()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    gradients = training()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    del gradients
    forward_ms, training_ms = (time_of(launch, flush, repeats, HOST_CYCLES) for launch in (forward, training))
    return {"forward": forward_ms, "training": training_ms, "peak_mib": round(peak / 2**20)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=pathlib.Path, default=pathlib.Path(__file__).parent / "layers.json")
    parser.add_argument("--op", default="", metavar="REGEX", help="only layers whose name has a match")
    parser.add_argument("--generative-recommenders", metavar="CHECKOUT", help="a checkout of the public package")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    report = report_alone()
    import hstujit.torch.stu

    ways = {"hstujit": hstujit.torch.stu}
    if options.generative_recommenders:
        checkout = options.generative_recommenders
        ways |= {"triton": public_layer(checkout), "mix": mixed_layer(checkout, TritonRows(checkout)),
                 "torch_compile": mixed_layer(checkout, Formulas())}
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    results, agreement = [], Agreement()
    for op in read_instances(options.config):
        if not re.search(options.op, op["name"]):
            continue
        torch._dynamo.reset()
        lengths = lengths_of(op, options.config.parent)
        torch.manual_seed(0)
        x = torch.randn(int(lengths.sum()), op["width"], dtype=torch.bfloat16, device="cuda", requires_grad=True)
        result = {"name": op["name"], "rows": len(x)}
        batch = batch_of(lengths, op)
        reference = reference_of(op, layer(hstujit.torch.stu, op), x, batch)
        for way, module in ways.items():
            try:
                chosen = layer(module, op).eval()  # without dropout
                found = outcome(lambda: chosen(x, lengths, *batch), leaves_of(x, chosen))  # noqa: B023
                if agreement.check(result, way, "bf16", found, reference):
                    del found
                    result[way] = time_layer(chosen.train(), x, lengths, batch, flush, options.repeats)
            except Exception as error:  # of one way; the others are still worth knowing
                print(f"{op['name']}, {way}: {type(error).__name__}: {error}", file=sys.stderr)
        results.append(result)
        del reference
        torch.cuda.empty_cache()
    write_report(report, results)
    return agreement.exit_code()


if __name__ == "__main__":
    sys.exit(main())
