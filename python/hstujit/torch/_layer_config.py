"""Translates a layer's configuration for ``stu_layer``: limits, names and parameters, and instances in a config."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._structs import is_number
from .._words import shown
from ..config import Config
from ..errors import InvalidArgumentError, InvalidConfigError
from ._arguments import fp32_precision
from ._calling import rename

if TYPE_CHECKING:
    from .stu import STULayer, STULayerConfig

Lengths = int | Sequence[int]

_BATCH = 256  # sequences of generated inputs, as a config's default

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
        "num_softmax_heads": config.num_softmax_heads,
        "precision": fp32_precision() if config.precision is None else config.precision,
    }


def less_memory_of(config: STULayerConfig) -> dict[str, Any]:
    """Parameters that the public package's configuration does not have."""
    return {"recompute_attn": config.recompute_attn, "backward_head_groups": config.backward_head_groups}


def instances_of(
    layer: STULayer, calls: Mapping[str, Lengths], dtypes: Mapping[str, str], num_targets: bool | int, name: str
) -> list[dict[str, Any]]:
    """Lengths by kind of call, and all else, are arguments of ``STULayer.instances``."""
    config, dropout = layer.config, layer.training and layer.config.output_dropout_ratio > 0
    lengths = {call: _list_of(given) for call, given in calls.items()}
    both = {"width": config.embedding_dim, "alpha": layer._alpha, **parameters_of(config), **dtypes}
    both["num_targets"] = num_targets if config.target_aware else False
    whole = {**both, "op": "stu_layer", "dropout": dropout, "seed_tensor": dropout, **less_memory_of(config)}
    recomputed = {field: getattr(config, field) for field in ("recompute_normed_x", "recompute_uvqk", "recompute_y")}
    parameters: dict[str, dict[str, Any]] = {
        "training": {**whole, **recomputed, "directions": ["forward", "backward"]},
        "inference": {**whole, **recomputed, "training": False},
        "prefill": {**whole, "recompute_uvqk": False},
        "cached_forward": {**both, "op": "cached_stu_layer"},
    }
    made = [
        {"name": f"{name}-{call}", **parameters[call], "max_seq_len": of_call}
        for call, of_call in lengths.items()
        if of_call
    ]
    if cached := sorted({*lengths["prefill"], *lengths["cached_forward"]}):  # keeps the first rows of each sequence
        offsets = dtypes["offsets_dtype"]
        made.append({"name": f"{name}-offsets", "op": "complete_cumsum", "dtype": offsets, "rows": _BATCH})
        split = {"op": "split_2d_jagged", "dtype": dtypes["dtype"], "offsets_dtype": offsets, "max_seq_len": cached}
        made += [{"name": f"{name}-keep-{width}", "width": width, **split} for width in sorted({*layer._columns})]
    return made


def _list_of(lengths: Any) -> list[int]:
    """Lengths as a list, also those of an array, whose rank is 0 where it is one length."""
    is_list = isinstance(lengths, Iterable) and getattr(lengths, "ndim", 1) > 0
    return [int(length) for length in (lengths if is_list else [lengths])]
