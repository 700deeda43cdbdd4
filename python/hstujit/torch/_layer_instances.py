"""The instances that calls of a layer use, as a config has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ._dtypes import dtype_name
from ._layer_config import less_memory_of, parameters_of

if TYPE_CHECKING:
    from .stu import STULayerConfig

Lengths = int | Sequence[int]

_BATCH = 256  # sequences of generated inputs, as a config's default


def instances_of(
    config: STULayerConfig,
    calls: Mapping[str, Lengths],
    *,
    alpha: float,
    dropout: bool,
    columns: Iterable[int],
    num_targets: bool | int,
    dtype: torch.dtype,
    weight_dtype: torch.dtype,
    offsets_dtype: torch.dtype,
    name: str,
) -> list[dict[str, Any]]:
    """
    Args:
        calls: lengths by kind of call; they and what follows ``columns`` are arguments of ``STULayer.instances``.
        alpha: of generated inputs.
        dropout: whether calls of the whole layer have it.
        columns: of v and of k, in a cache.
    """
    lengths = {call: _list_of(given) for call, given in calls.items()}
    both = {
        "width": config.embedding_dim,
        **parameters_of(config),
        "dtype": dtype_name(dtype),
        "weight_dtype": dtype_name(weight_dtype),
        "offsets_dtype": dtype_name(offsets_dtype),
        "num_targets": num_targets if config.target_aware else False,
        "alpha": alpha,
    }
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
    if cached := sorted({*lengths["prefill"], *lengths["cached_forward"]}):
        made += _of_cache(name, columns, dtype_name(dtype), dtype_name(offsets_dtype), cached)
    return made


def _of_cache(
    name: str, columns: Iterable[int], dtype: str, offsets_dtype: str, lengths: list[int]
) -> Iterator[dict[str, Any]]:
    """Instances that keep the first rows of each sequence."""
    yield {"name": f"{name}-offsets", "op": "complete_cumsum", "dtype": offsets_dtype, "rows": _BATCH}
    for width in sorted(set(columns)):
        split = {"op": "split_2d_jagged", "width": width, "dtype": dtype, "offsets_dtype": offsets_dtype}
        yield {"name": f"{name}-keep-{width}", **split, "max_seq_len": lengths}


def _list_of(lengths: Any) -> list[int]:
    """Lengths as a list, also those of an array, whose rank is 0 where it is one length."""
    is_list = isinstance(lengths, Iterable) and getattr(lengths, "ndim", 1) > 0
    return [int(length) for length in (lengths if is_list else [lengths])]
