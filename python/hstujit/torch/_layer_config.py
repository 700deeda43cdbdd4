"""What a layer's configuration means for ``stu_layer``: limits, names and parameters."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from typing import TYPE_CHECKING, Any

from .._checked import as_real, is_integer, is_number
from .._interface import operators
from .._words import renamed, shown
from ..config import Config
from ..errors import InvalidArgumentError, InvalidConfigError
from ._arguments import fp32_precision

if TYPE_CHECKING:
    from .stu import STULayerConfig

# By field: the parameter of ``stu_layer`` whose limits it has.
_COUNTS: dict[str, str] = {
    "embedding_dim": "width",
    "num_heads": "heads",
    "hidden_dim": "hidden_dim",
    "attention_dim": "attn_dim",
    "max_attn_len": "max_attn_len",
    "contextual_seq_len": "contextual_seq_len",
    "backward_head_groups": "backward_head_groups",
}

# By what ``stu_layer`` names in a sentence: what a caller of a layer knows it as.
NAMES = {
    **{parameter: field for field, parameter in _COUNTS.items() if parameter != field},
    "seq_offsets": "x_offsets",
    "group_norm": "use_group_norm",
    "dropout_ratio": "output_dropout_ratio",
    "alpha": "attn_alpha",
    "input_norm_weight": "_input_norm_weight",
    "input_norm_bias": "_input_norm_bias",
    "uvqk_weight": "_uvqk_weight",
    "uvqk_bias": "_uvqk_beta",
    "output_weight": "_output_weight",
    "output_norm_weight": "_output_norm_weight",
    "output_norm_bias": "_output_norm_bias",
}
CACHED_NAMES = {**NAMES, "x": "delta_x"}


def check_values(config: STULayerConfig) -> None:
    """Raises InvalidArgumentError with every value that no layer can have."""
    properties = operators()["stu_layer"]["parameters"]["properties"]
    wrong = []
    for name, parameter in _COUNTS.items():
        limits = properties[parameter]
        value = getattr(config, name)
        if value is None and name == "max_attn_len":
            continue
        lowest, highest, multiple = limits["minimum"], limits["maximum"], limits.get("multipleOf", 1)
        if not is_integer(value) or not lowest <= value <= highest or value % multiple:
            of = f", a multiple of {multiple}," if multiple > 1 else ""
            none = ", or None" if name == "max_attn_len" else ""
            wrong.append(f"{name} is {shown(value)}; it must be an integer{of} from {lowest} to {highest}{none}")
    ratio, alpha = config.output_dropout_ratio, config.attn_alpha
    if not is_number(ratio) or not 0 <= ratio <= 1:
        wrong.append(f"output_dropout_ratio is {shown(ratio)}; it must be a number from 0 to 1")
    if alpha is not None and not _is_finite(alpha):
        wrong.append(f"attn_alpha is {shown(alpha)}; it must be a finite number of fp32, or None")
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.type == "bool" and not isinstance(value, bool):
            wrong.append(f"{field.name} is {shown(value)}; it must be True or False")
    precisions = properties["precision"]["enum"]
    if _precision(config) not in precisions:
        wrong.append(f"precision is {shown(config.precision)}; it must be {', '.join(precisions)} or None")
    if wrong:
        raise InvalidArgumentError("\n".join(wrong))
    _check_together(config)


def _is_finite(value: object) -> bool:
    """Whether it is a number that fp32 has room for, as a launch needs it."""
    number = as_real(value) if is_number(value) else None
    return number is not None and math.isfinite(ctypes.c_float(number).value)


def _check_together(config: STULayerConfig) -> None:
    """What the library says of fields beside one another."""
    instance = {"name": "layer", "op": "stu_layer", "max_seq_len": 1, "dtype": "fp32"}
    try:
        Config([{**instance, "width": config.embedding_dim, **parameters_of(config), **less_memory_of(config)}])
    except InvalidConfigError as error:
        raise InvalidArgumentError(renamed(str(error).replace("[0].", ""), NAMES)) from None


def parameters_of(config: STULayerConfig) -> dict[str, Any]:
    """Of ``stu_layer`` and of ``cached_stu_layer``."""
    return {
        "heads": config.num_heads,
        "attn_dim": config.attention_dim,
        "hidden_dim": config.hidden_dim,
        "causal": config.causal,
        "max_attn_len": config.max_attn_len or 0,
        "contextual_seq_len": config.contextual_seq_len,
        "group_norm": config.use_group_norm,
        "precision": _precision(config),
    }


def _precision(config: STULayerConfig) -> str:
    return fp32_precision() if config.precision is None else config.precision


def less_memory_of(config: STULayerConfig) -> dict[str, Any]:
    """What the public package's configuration does not have."""
    return {"recompute_attn": config.recompute_attn, "backward_head_groups": config.backward_head_groups}
