#!/usr/bin/env python3
"""Times whole layers through PyTorch: STULayer of hstujit.torch, and those of a checkout of the public package.

    bench/layer_peers.py --generative-recommenders CHECKOUT [--config FILE] [--op REGEX] [--repeats N] > layer_peers.json

Ways: hstujit.torch; "triton", the public layer by its Triton kernels, without TMA (public_package.py says why); "mix",
its attention between halves of its Triton kernels for what is done to rows and cuBLAS for products; "torch_compile",
its attention between halves that torch.compile fuses. All layers have the same weights and rows. Each has a process of
its own: where the public backward kernel is tuned, it accesses memory that is not its own for some widths, and "ended"
says so. "forward" keeps what backward needs; "training" is forward and backward with the gradients of rows and weights.
Times are medians in ms, with the L2 cache emptied before each launch, and the time of the host hidden behind that.
"peak_mib" is PyTorch's memory at the peak of a training step, above rows and weights.

Each way's result and gradients in eval mode are compared with a layer in float64: "difference" has the distances, over
the norm of that. A way that differs by more than bf16 allows is not timed (bench/agreement.py).
"""

import argparse
import json
import pathlib
import re
import signal
import sys

import references
import torch
from agreement import Agreement
from processes import printed_by
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
    """Tensors whose gradients are compared, in one order for layers of both packages."""
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


def module_of(way, checkout):
    """Where the layer is that a way has."""
    if way == "hstujit":
        import hstujit.torch.stu

        return hstujit.torch.stu
    if way == "triton":
        return public_layer(checkout)
    return mixed_layer(checkout, TritonRows(checkout) if way == "mix" else Formulas())


def time_way(way, op, folder, options):
    """Prints the distances of a way, and then its times, as objects of JSON."""
    import hstujit.torch.stu

    report, flush = report_alone(), torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    lengths = lengths_of(op, folder)
    torch.manual_seed(0)
    x = torch.randn(int(lengths.sum()), op["width"], dtype=torch.bfloat16, device="cuda", requires_grad=True)
    batch = batch_of(lengths, op)
    chosen = layer(module_of(way, options.generative_recommenders), op).eval()  # without dropout
    result = {"name": op["name"]}
    reference = reference_of(op, layer(hstujit.torch.stu, op), x, batch)
    found = outcome(lambda: chosen(x, lengths, *batch), leaves_of(x, chosen))
    agreement = Agreement()
    agrees = agreement.check(result, way, "bf16", found, reference)
    del result["name"], found, reference
    print(json.dumps(result), file=report, flush=True)
    if agrees:
        print(json.dumps({way: time_layer(chosen.train(), x, lengths, batch, flush, options.repeats)}), file=report)


def add_way(result, way, op, options):
    """Findings of a process of its own about a way, and why it ended, if it did before its time."""
    found, error = printed_by([sys.executable, __file__, *sys.argv[1:], "--way", way], json.dumps(op), options.timeout)
    for of_way in found:
        for key, value in of_way.items():
            result[key] = {**result.get(key, {}), **value}
    if error:
        result.setdefault("ended", {})[way] = error
        print(f"{op['name']}, {way}: {error}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=pathlib.Path, default=pathlib.Path(__file__).parent / "layers.json")
    parser.add_argument("--op", default="", metavar="REGEX", help="only layers whose name has a match")
    parser.add_argument("--generative-recommenders", metavar="CHECKOUT", help="a checkout of the public package")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--timeout", type=int, default=300, help="seconds for a way, most of which Triton tunes")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        return time_way(options.way, json.load(sys.stdin), options.config.parent, options)
    ways = ["hstujit", *(["triton", "mix", "torch_compile"] if options.generative_recommenders else [])]
    results = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("layer_peers: told to stop; what was timed is written"))
    try:
        for op in (op for op in read_instances(options.config) if re.search(options.op, op["name"])):
            results.append({"name": op["name"], "rows": int(lengths_of(op, options.config.parent).sum())})
            for way in ways:
                add_way(results[-1], way, op, options)
    finally:
        write_report(sys.stdout, results)
    wrong = [f"{result['name']}, {way}: {why}" for result in results for way, why in result.get("not_compared", {}).items()]
    wrong += [f"{result['name']}: our own layer ended" for result in results if "hstujit" in result.get("ended", {})]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
