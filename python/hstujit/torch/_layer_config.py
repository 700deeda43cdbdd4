"""Translates a layer's configuration for ``stu_layer``: limits, names and parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .._numbers import is_number
from .._words import shown
from ..config import Config
from ..errors import InvalidArgumentError, InvalidConfigError
from ._arguments import fp32_precision
from ._calling import rename

if TYPE_CHECKING:
    from .stu import STULayerConfig

# By what ``stu_layer`` names in a sentence: what a caller of a layer knows it as.
NAMES = {
    "width": "embedding_dim",
    "heads": "num_heads",
    "attn_dim": "attention_dim",
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
    """Raises InvalidArgumentError with every value that no layer can have, by the library's rules of ``stu_layer``."""
    ratio, alpha = config.output_dropout_ratio, config.attn_alpha
    if not is_number(ratio) or not 0 <= ratio <= 1:
        raise InvalidArgumentError(f"output_dropout_ratio is {shown(ratio)}; it must be a number from 0 to 1")
    instance = {"name": "layer", "op": "stu_layer", "max_seq_len": 1, "dtype": "fp32", "width": config.embedding_dim}
    instance |= {**parameters_of(config), **less_memory_of(config), **({} if alpha is None else {"alpha": alpha})}
    try:
        Config([instance])
    except InvalidConfigError as error:
        wrong = InvalidArgumentError(re.sub(r"^\[0\]\.", "", str(error), flags=re.M))
        wrong.argument = error.argument.removeprefix("[0].")
        rename(wrong, NAMES, "stu_layer")
        raise wrong from None


def parameters_of(config: STULayerConfig) -> dict[str, Any]:
    """Parameters of ``stu_layer`` and of ``cached_stu_layer``."""
    return {
        "heads": config.num_heads,
        "attn_dim": config.attention_dim,
        "hidden_dim": config.hidden_dim,
        "causal": config.causal,
        "max_attn_len": config.max_attn_len or 0,
        "contextual_seq_len": config.contextual_seq_len,
        "group_norm": config.use_group_norm,
        "precision": fp32_precision() if config.precision is None else config.precision,
    }


def less_memory_of(config: STULayerConfig) -> dict[str, Any]:
    """Parameters that the public package's configuration does not have."""
    return {"recompute_attn": config.recompute_attn, "backward_head_groups": config.backward_head_groups}
