"""The matrix's instances of operators over rows, over rows of sequences, and of those of serving."""

import itertools
import json
import pathlib

from matrix_attention import LENGTHS

OPERATORS = pathlib.Path(__file__).resolve().parent.parent / "operators"

ROW_WIDTHS = (1, 7, 8, 64, 100, 256, 1000, 1024, 4096, 16384)
ROW_COUNTS = (0, 1, 131, 5000)
ROW_TYPES = {
    "bf16": {"dtype": "bf16"},
    "bf16_weight": {"dtype": "bf16", "weight_dtype": "bf16"},
    "fp16": {"dtype": "fp16"},
    "fp16_weight": {"dtype": "fp16", "weight_dtype": "fp16"},
    "fp32": {"dtype": "fp32"},
}


def over_sequences():
    """Names of the operators whose instances have lengths."""
    schema = json.loads((OPERATORS.parent.parent / "hstujit.schema.json").read_text(encoding="utf-8"))
    entries = schema["properties"]["ops"]["items"]["anyOf"]
    return {entry["properties"]["op"]["const"] for entry in entries if "lengths" in entry["properties"]}


def row_operators(sequences=False):
    """Name and parameters of every operator of the row family, over sequences or not: what tests/operators/<op>/cases.json lists,
    each with each, or lists of such."""
    for file in sorted(OPERATORS.glob("*/cases.json")):
        operator = file.parent.name
        if (operator in over_sequences()) != sequences:
            continue
        listed = json.loads(file.read_text(encoding="utf-8"))
        lists = listed if isinstance(listed, list) else [listed]
        for chosen in (dict(zip(one, values)) for one in lists for values in itertools.product(*one.values())):
            suffix = [parameter if value is True else value for parameter, value in chosen.items() if value is True or isinstance(value, str)]
            yield "_".join([operator, *suffix]), {"op": operator, **chosen}


def row_instances():
    """Operators over rows: every width, type and option, each with every number of rows in turn. A check runs strided rows, too."""
    for width in ROW_WIDTHS:
        number = 0
        for kind, type_parameters in ROW_TYPES.items():
            for operator, parameters in row_operators():
                if width % parameters.get("heads", 1) != 0:
                    continue
                if kind.endswith("_weight") and (operator == "silu" or not parameters.get("weight", True) and not parameters.get("bias", False)):
                    continue  # there is nothing of that type
                rows = ROW_COUNTS[number % len(ROW_COUNTS)]
                number += 1
                # The float64 reference of the widest takes memory.
                rows = min(rows, 500) if width > 1024 else rows
                yield {"name": f"rows_{kind}-{operator}_{width}x{rows}", **parameters, **type_parameters, "width": width, "rows": rows}
    for alignment in (2, 4, 8):
        yield {"name": f"rows_alignment{alignment}", "op": "layer_norm", "width": 256, "alignment": alignment, "rows": 131}


SEQUENCE_WIDTHS = (1, 7, 8, 64, 100, 512, 1024, 2048)
# Sequences without rows, of one and of those about a tile; one; none with rows; one huge one among tiny ones.
SEQUENCE_LENGTHS = [LENGTHS, [3000], [0], [1, 0, 2, 1] * 10 + [700] + [1] * 9]
SEQUENCE_TYPES = ("bf16", "fp16", "fp32")


def sequence_instances():
    """Operators over rows of sequences: every width, type and option, each with every kind of lengths in turn."""
    for width in SEQUENCE_WIDTHS:
        number = 0
        for kind in SEQUENCE_TYPES:
            for operator, parameters in row_operators(sequences=True):
                if parameters.get("weight_dtype") == "bf16" and kind != "bf16":
                    continue
                lengths = SEQUENCE_LENGTHS[number % len(SEQUENCE_LENGTHS)]
                number += 1
                yield {"name": f"rows_{kind}-{operator}_{width}x{len(lengths)}", **parameters, "dtype": kind, "width": width,
                       "max_seq_len": max(1, *lengths, 0), "lengths": lengths}


# Lengths of a scan: none, one, about a tile of any config, and more tiles than there are chunks.
SCAN_COUNTS = (0, 1, 511, 512, 1023, 1024, 2047, 2048, 4095, 4096, 8191, 8192, 16383, 16384, 100000, 3000001)


def serving_instances():
    """Caches of keys and values, and offsets of lengths."""
    for number, kind in enumerate(SEQUENCE_TYPES):
        for heads, attn_dim, hidden_dim in ((1, 8, 8), (4, 64, 128), (8, 128, 128), (2, 25, 25), (1, 50, 7)):
            lengths = SEQUENCE_LENGTHS[number % len(SEQUENCE_LENGTHS)]
            for operator in ("update_kv_cache", "construct_full_kv"):
                yield {"name": f"serving_{kind}-{operator}_{heads}x{attn_dim}x{hidden_dim}", "op": operator, "dtype": kind,
                       "heads": heads, "attn_dim": attn_dim, "hidden_dim": hidden_dim,
                       "max_seq_len": max(1, *lengths, 0), "lengths": lengths}
    for kind in ("int32", "int64"):
        for count in SCAN_COUNTS:
            yield {"name": f"serving_{kind}-complete_cumsum_{count}", "op": "complete_cumsum", "dtype": kind, "rows": count}
