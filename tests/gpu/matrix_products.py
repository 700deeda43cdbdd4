"""The matrix's instances of products of matrices, of all rows and of those of sequences."""

import itertools

from matrix_attention import LENGTHS, TYPES
from matrix_rows import SEQUENCE_LENGTHS

# Rows about a tile of any config, one, none, and so many that each CTA has several tiles.
PRODUCT_ROWS = (0, 1, 63, 64, 65, 127, 128, 129, 255, 257, 300, 1000, 4097, 20000)
# Sums of one stage, of none that is full, of more than a pipeline has; columns of one tile, of a part of one, of many.
PRODUCT_SIZES = ((8, 8), (64, 64), (72, 200), (128, 256), (136, 248), (512, 512), (520, 1000), (1024, 264), (2056, 128), (256, 2048))
# Rows that no tensor map loads: public models' 50 and 25, one column, odd numbers, and one side of whole pieces.
PRODUCT_WIDTHS = ((1, 1), (7, 130), (25, 50), (50, 200), (200, 50), (1026, 513))
# Matrices of whole pieces in rows that begin elsewhere.
PRODUCT_ALIGNMENTS = (2, 4, 8)


def suffix_of(parameters):
    """Suffix of a product's name: what is added, or that a bias has a gradient."""
    return "".join("_" + (value if isinstance(value, str) else name) for name, value in parameters.items() if value)


def product_instances():
    """Products of matrices: every size, form of the addend and layout of the weights, each with some numbers of rows in turn."""
    yield from sized_product_instances(PRODUCT_SIZES, "")
    yield from sized_product_instances(PRODUCT_WIDTHS, "_width")
    for alignment in PRODUCT_ALIGNMENTS:
        for chosen in sized_product_instances(((136, 248),), f"_alignment{alignment}"):
            if alignment > 2 or chosen["dtype"] != "fp32":
                yield {**chosen, "alignment": alignment}
    yield from sequence_product_instances(PRODUCT_SIZES, "")
    yield from sequence_product_instances(PRODUCT_WIDTHS, "_width")


def sized_product_instances(sizes, mark):
    number = 0
    for kinds, (k, n) in itertools.product((("bf16", "fp16"), ("tf32", "fp32")), sizes):
        for kind in kinds:
            for transposed in (False, True):
                operators = [("addmm", {"input": addend}) for addend in ("none", "vector", "matrix")]
                operators += [("addmm_wgrad", {"bias": bias}) for bias in (False, True)]
                for operator, parameters in operators:
                    rows = PRODUCT_ROWS[number % len(PRODUCT_ROWS)]
                    number += 3
                    name = f"product_{kind}-{operator}{suffix_of(parameters)}{'_transposed' if transposed else ''}{mark}"
                    if operator == "addmm":
                        yield {"name": f"{name}_silu_{rows}x{k}x{n}", "op": operator, **TYPES[kind], "k": k, "n": n, "rows": rows,
                               "transpose_mat2": transposed, "silu_columns": n // 2 + 1, **parameters}
                    yield {"name": f"{name}_{rows}x{k}x{n}", "op": operator, **TYPES[kind], "k": k, "n": n, "rows": rows,
                           "transpose_mat2": transposed, **parameters}


# Besides those of all: more sequences than lanes look at together, and more tiles than a GPU has multiprocessors.
SEQUENCE_PRODUCT_LENGTHS = [*SEQUENCE_LENGTHS, LENGTHS * 3, [257, 0, 255, 256, 1000] * 10, [64] * 3]


def sequence_product_instances(sizes, mark):
    """Products of the rows of sequences: every size, kind of bias and layout, each with some lengths in turn."""
    number = 0
    for k, n in sizes:
        for kind, offsets in (("bf16", "int64"), ("fp16", "int32"), ("tf32", "int64"), ("fp32", "int32")):
            for transposed in (False, True):
                biases = {"none": {"bias": False}, "sequence": {}, "elementwise": {"elementwise": True}}
                operators = [("jagged_dense_bmm_broadcast_add", f"_{bias}", {"transpose_dense": transposed, **parameters})
                             for bias, parameters in biases.items()]
                operators += [("jagged_jagged_bmm", "_bias" if bias else "", {"transpose_out": transposed, "bias": bias})
                              for bias in (False, True)]
                for operator, suffix, parameters in operators:
                    lengths = SEQUENCE_PRODUCT_LENGTHS[number % len(SEQUENCE_PRODUCT_LENGTHS)]
                    number += 1
                    name = f"product_{kind}-{operator}{suffix}{'_transposed' if transposed else ''}{mark}_{len(lengths)}x{k}x{n}"
                    yield {"name": name, "op": operator, **TYPES[kind], "offsets_dtype": offsets, "k": k, "n": n,
                           "max_seq_len": max(lengths) or 1, "lengths": lengths, **parameters}
