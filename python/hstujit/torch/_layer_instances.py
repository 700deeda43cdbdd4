"""The instances that calls of a layer use, as a config has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .._calls import LARGEST_COUNT
from .._checked import as_integer, is_integer
from .._interface import operators
from .._words import either, shown
from ..config import Config
from ..errors import InvalidArgumentError, InvalidConfigError
from ._dtypes import DTYPES, dtype_name
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
        calls: lengths by kind of call; they and what follows ``columns`` are arguments of ``STULayer.instances``, which
            are checked.
        alpha: of generated inputs.
        dropout: whether calls of the whole layer have it.
        columns: of v and of k, in a cache.
    """
    lengths = {call: _list_of(call, given) for call, given in calls.items()}
    if not any(lengths.values()):
        raise InvalidArgumentError(f"no lengths are given; they must be of {', '.join(lengths)}")
    _check_types(dtype=dtype, weight_dtype=weight_dtype, offsets_dtype=offsets_dtype)
    if not (is_integer(num_targets) and 0 <= num_targets < LARGEST_COUNT) and not isinstance(num_targets, bool):
        raise InvalidArgumentError(
            f"num_targets is {shown(num_targets)}; it must be True, False or a count of generated targets"
        )
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
    _check_name(name, max((instance["name"] for instance in made), key=len))
    return made


def _of_cache(
    name: str, columns: Iterable[int], dtype: str, offsets_dtype: str, lengths: list[int]
) -> Iterator[dict[str, Any]]:
    """Of what keeps the first rows of each sequence."""
    yield {"name": f"{name}-offsets", "op": "complete_cumsum", "dtype": offsets_dtype, "rows": _BATCH}
    for width in sorted(set(columns)):
        split = {"op": "split_2d_jagged", "width": width, "dtype": dtype, "offsets_dtype": offsets_dtype}
        yield {"name": f"{name}-keep-{width}", **split, "max_seq_len": lengths}


def _check_types(**dtypes: Any) -> None:
    """By name of a parameter of ``stu_layer``, which says what it may be."""
    properties = operators()["stu_layer"]["parameters"]["properties"]
    for name, dtype in dtypes.items():
        allowed = properties[name]["enum"]
        if not isinstance(dtype, torch.dtype) or dtype_name(dtype) not in allowed:
            wanted = either([str(DTYPES[known]) for known in allowed])
            raise InvalidArgumentError(f"{name} is {shown(dtype)}; it must be {wanted}")


def _check_name(name: str, longest: str) -> None:
    """Whether a config takes the longest name of an instance. The library says what it takes."""
    text = longest.encode(errors="backslashreplace").decode()  # JSON has no lone surrogates
    try:
        Config([{"name": text, "op": "complete_cumsum", "rows": 1}])
    except InvalidConfigError as error:
        allowed = str(error).rpartition("; ")[2]
        raise InvalidArgumentError(
            f"name is {shown(name)}, so an instance has the name {shown(longest)}; {allowed}"
        ) from None


def _list_of(name: str, lengths: Any) -> list[int]:
    """Also of an array, whose rank is 0 where it is one length."""
    is_list = isinstance(lengths, Iterable) and not isinstance(lengths, (str, bytes))
    is_list = is_list and getattr(lengths, "ndim", 1) > 0
    found = []
    for given in lengths if is_list else [lengths]:
        length = as_integer(given)
        if length is None or not 1 <= length <= LARGEST_COUNT:
            wanted = f"lengths, integers from 1 to {LARGEST_COUNT}"
            raise InvalidArgumentError(f"{name} is {shown(lengths)}; it must be {wanted}")
        found.append(length)
    return found
