#!/usr/bin/env python3
"""Times PyTorch's products, which are cuBLAS's, for the operators of bench/products.json on one GPU.

    bench/product_peers.py [--config FILE] [--op REGEX] [--repeats N] > product_peers.json

Each is timed by cuBLAS and by cuBLASLt, with a vector as the fused epilogue where there is one, and the shortest time counts. Times are
medians in ms, with the L2 cache emptied before each launch, and the time of the host hidden behind that. A library that differs from
the product in float64 is not timed (bench/agreement.py).
"""

import argparse
import functools
import pathlib
import re
import sys

import torch
from agreement import Agreement
from row_peers import FLUSH_BYTES, read_instances, report_alone, time_of, write_report


def factors(op):
    """Tensors of what the operator computes; a transposed factor is a view."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[op.get("dtype", "bf16")]
    rows, k, n = op["rows"], op["k"], op["n"]
    made = functools.partial(torch.randn, dtype=dtype, device="cuda")
    mat1 = made(rows, k)
    if op["op"] == "addmm_wgrad":
        return mat1, made(rows, n)
    mat2 = made(n, k).t() if op.get("transpose_mat2") else made(k, n)
    return (mat1, mat2) if op.get("input", "none") == "none" else (mat1, mat2, made(n))


def product(op, mat1, mat2, bias=None):
    """Result of the operator for its factors: one tensor or two."""
    if op["op"] == "addmm_wgrad":
        return [torch.mm(mat1.t(), mat2)] + ([mat2.sum(0)] if op.get("bias") else [])
    return [torch.mm(mat1, mat2) if bias is None else torch.addmm(bias, mat1, mat2)]


def time_instance(op, flush, repeats, agreement):
    tensors, result, times = factors(op), {"name": op["name"]}, {}
    is_tf32 = op.get("precision", "tf32") == "tf32"  # of fp32 data alone
    torch.backends.cuda.matmul.allow_tf32 = is_tf32
    dtype = op.get("dtype", "bf16")
    reference = {"forward": product(op, *(tensor.double() for tensor in tensors))}
    for library in ("cublas", "cublaslt"):
        torch.backends.cuda.preferred_blas_library(library)
        found = {"forward": product(op, *tensors)}
        if agreement.check(result, library, "tf32" if dtype == "fp32" and is_tf32 else dtype, found, reference):
            times[library] = time_of(lambda: product(op, *tensors), flush, repeats)
    return result | {"ways": times} | ({"pytorch": {"forward": min(times.values())}} if times else {})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default=pathlib.Path(__file__).parent / "products.json")
    parser.add_argument("--op", default="", metavar="REGEX", help="only instances whose name has a match")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    report = report_alone()
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    times, agreement = [], Agreement()
    for op in read_instances(options.config):
        if re.search(options.op, op["name"]):
            times.append(time_instance(op, flush, options.repeats, agreement))
            torch.cuda.empty_cache()
    write_report(report, times)
    return agreement.exit_code()


if __name__ == "__main__":
    sys.exit(main())
