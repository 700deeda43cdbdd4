"""A layer in a graph of torch.fx: one node, which calls the layer when the graph runs."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
from typing import TYPE_CHECKING, Any

import torch

from ..errors import UnsupportedError
from ._nodes import Node

if TYPE_CHECKING:
    from .stu import STULayer


def node_of(layer: STULayer, *call: Any) -> Any:
    """The node of a call of ``forward`` with proxies.

    Args:
        call: all arguments of ``forward``, in order.
    """
    *given, _, kv_caching_lengths = call
    if kv_caching_lengths is not None:
        raise UnsupportedError(
            "kv_caching_lengths is given while torch.fx traces, and a graph keeps no cache; it must be None: where the "
            "layer itself is traced, by concrete_args={'max_kv_caching_len': 0, 'kv_caching_lengths': None}"
        )
    arguments = dict(zip(_node.parameters, given))
    arguments["parameters"] = [getattr(layer, name) for name, _ in layer.named_parameters()]  # proxies
    arguments["config"] = json.dumps(dataclasses.asdict(layer.config))
    arguments["training"] = layer.training
    return _node.add(arguments)


def stu_layer(
    x: torch.Tensor,
    x_lengths: torch.Tensor,
    x_offsets: torch.Tensor,
    max_seq_len: int,
    num_targets: torch.Tensor | None,
    parameters: list[torch.Tensor],
    config: str,
    training: bool,
) -> torch.Tensor:
    """A call of a layer.

    Args:
        parameters: in the order of ``STULayer.named_parameters``.
        config: the fields of its STULayerConfig, as JSON.
        training: whether the layer is in train mode.
    """
    empty = _layer_without_data(config)
    layer = copy.copy(empty)
    layer._parameters = dict(zip(empty._parameters, parameters))  # type: ignore[arg-type]
    layer.training = training
    return layer(x, x_lengths, x_offsets, max_seq_len, num_targets)


@functools.lru_cache(maxsize=256)
def _layer_without_data(config: str) -> STULayer:
    from .stu import STULayer, STULayerConfig

    with torch.device("meta"):
        return STULayer(STULayerConfig(**json.loads(config)))


_node = Node(stu_layer)
