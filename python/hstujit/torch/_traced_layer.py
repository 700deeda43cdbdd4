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


def node_of(layer: STULayer, call: tuple[Any, ...], contexts: Any, operands: list[Any], kv_caching_lengths: Any) -> Any:
    """The node of a call of ``forward`` with proxies.

    Args:
        call: the arguments of ``forward`` up to ``num_targets``.
        operands: in the order of their declarations.
    """
    if kv_caching_lengths is not None:
        raise UnsupportedError(
            "kv_caching_lengths is given while torch.fx traces, and a graph keeps no cache; it must be None: where the "
            "layer itself is traced, by concrete_args={'max_kv_caching_len': 0, 'kv_caching_lengths': None}"
        )
    arguments = dict(zip(_node.parameters, call))
    parameters = [getattr(layer, name) for name, _ in layer.named_parameters()]  # proxies
    arguments["parameters"] = [*parameters, *operands]
    arguments["config"] = json.dumps(dataclasses.asdict(layer.config))
    arguments["training"], arguments["contextual_seq_len"] = layer.training, contexts
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
    contextual_seq_len: int | torch.Tensor | None = None,
) -> torch.Tensor:
    """A call of a layer.

    Args:
        parameters: in the order of ``STULayer.named_parameters``, and behind them the operands as they are declared.
        config: the fields of its STULayerConfig, as JSON.
        training: whether the layer is in train mode.
    """
    empty = _layer_without_data(config)
    layer = copy.copy(empty)
    layer._parameters = dict(zip(empty._parameters, parameters))  # type: ignore[arg-type]
    layer.training = training
    operands = dict(zip(layer.operand_names, parameters[len(empty._parameters) :]))
    call = x, x_lengths, x_offsets, max_seq_len, num_targets
    return layer(*call, contextual_seq_len=contextual_seq_len, operands=operands)


@functools.lru_cache(maxsize=256)
def _layer_without_data(config: str) -> STULayer:
    from ._layer_config import STULayerConfig
    from .stu import STULayer

    with torch.device("meta"):
        return STULayer(STULayerConfig(**json.loads(config)))


_node = Node(stu_layer)
