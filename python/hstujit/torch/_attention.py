"""Attention whose score and mask are texts or functions of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import torch

from .._words import shown
from ..errors import InvalidArgumentError
from ._arguments import contexts_of, dropout_of, fp32_precision, like_offsets
from ._operands import Facts, Operand, Reads, declared, declared_facts, facts_of
from ._schema import OPERATORS as _ops
from ._tracing import Term, Unavailable, reads_nothing_else, text_of

Function = Callable[..., Any]

_BATCH = Unavailable("b", "an instance says the same for all sequences of a batch")
_HEAD_OF_MASK = Unavailable("h", "a mask is the same for all heads")
_ROW, _COL = Term("row"), Term("col")
_OF_MASKS = {name: Term(name) for name in ("n", "targets")}
_OF_SCORES = {name: Term(name) for name in ("n", "targets", "heads", "alpha")}


def _mask_text(mask: str | Function) -> str:
    if isinstance(mask, str):
        return mask
    return text_of("mask", mask, (_BATCH, _HEAD_OF_MASK, _ROW, _COL), _OF_MASKS, is_condition=True)


def _score_text(score: str | Function, reads: Reads) -> tuple[str, tuple[str, ...]]:
    """The text, and the kinds of the operands that it reads."""
    if isinstance(score, str):
        text = score
        for operand in reads.named.values():
            operand.read_in(text)
    else:
        terms = Term("x"), _BATCH, Term("head"), _ROW, _COL
        text = text_of("score", score, terms, {**_OF_SCORES, **reads.named}, is_condition=False, reader=reads)
    return text, reads.kinds()


def _constant_text(score: str | Function, *named: Facts) -> tuple[str, tuple[str, ...]]:
    return _score_text(score, Reads(named))


# In a graph of torch.compile a text is a constant, as by torch.compiler.assume_constant_result, which imports
# torch._dynamo. Nothing guards what is around a function: one that reads it breaks the graph and is traced each time.
_mask_text_now: Function = torch._disable_dynamo(_mask_text)
_text_now: Function = torch._disable_dynamo(_constant_text)
for _constant in (_mask_text, _constant_text, reads_nothing_else):
    _constant._dynamo_marked_constant = True  # type: ignore[union-attr]


def _may_change(function: str | Function) -> bool:
    if isinstance(function, str) or not torch.compiler.is_dynamo_compiling():
        return False
    if not isinstance(function, FunctionType) or function.__code__.co_freevars:
        return True
    return bool(function.__defaults__ or function.__kwdefaults__) or not reads_nothing_else(function)


def texts_of(mask: str | Function | None, score: str | Function | None, operands: str) -> tuple[str | None, str | None]:
    """The texts of a mask and of a score, which reads the tensors that ``operands`` declares, and no others."""
    if not isinstance(operands, str):
        raise InvalidArgumentError(f"operands is {shown(operands)}; it must be a text, such as 'ts: row(int64)'")
    mask_text = None if mask is None else _mask_text(mask)
    return mask_text, None if score is None else _constant_text(score, *declared_facts(operands))[0]


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    seq_offsets: torch.Tensor,
    max_seq_len: int,
    *,
    score: str | Function | None = None,
    mask: str | Function | None = None,
    alpha: float | None = None,
    num_targets: torch.Tensor | None = None,
    rab: torch.Tensor | None = None,
    attn_scale: torch.Tensor | None = None,
    scaling_seqlen: int = -1,
    operands: Mapping[str, torch.Tensor | Operand] | None = None,
    dropout_ratio: float = 0.0,
    training: bool = True,
    seed: int | torch.Tensor | None = None,
    **parameters: Any,
) -> torch.Tensor:
    """Attention of each sequence over itself, with the score and the mask of docs/expressions.md.

    Args:
        q, k: (L, heads, attn_dim), of fp32, fp16 or bf16.
        v: (L, heads, hidden_dim).
        seq_offsets: (B + 1), int32 or int64: the first row of each sequence, and L.
        max_seq_len: no sequence is longer; the divisor of scores where ``scaling_seqlen`` is not above 0.
        score: a text, or ``score(x, b, h, row, col)`` where x is the dot product times alpha: the weight of a pair,
            before it is divided. None: silu.
        mask: a text, or ``mask(b, h, row, col)``: whether row attends to col. None: what ``parameters`` say, causal.
        alpha: factor of the dot products. None: attn_dim ** -0.5.
        num_targets: (B), targets at the end of each sequence.
        rab: (B, bias heads, max_seq_len, max_seq_len), added to the dot products before alpha.
        attn_scale: (L) or (1), fp32: factors of the rows, in place of the division.
        operands: tensors that the score reads, by name: ``ts[row + 1]``. How it reads one says whether that has an
            element for each row, is a table, or has one for each head; ``hstujit.torch.row``, ``table``, ``head``,
            ``scalar``, ``sequence`` and ``pair`` say it where that is not enough. A function asks for them by name. It
            may read tensors that are around it, too, but in ``torch.compile``.
        dropout_ratio: of the weights that become 0 in training, from 0 to 1, a multiple of 1 / 256.
        seed: decides which ones: a number, or (1) int64. None: drawn by PyTorch's generator of q's device.
        parameters: other keywords of ``torch.ops.hstujit.hstu_attention``, such as ``max_attn_len``. A tensor (B) as
            ``contextual_seq_len`` has the number of each sequence.

    A function is called once, with terms that stand for numbers: in each call of attention, or for each graph of
    ``torch.compile``. One that reads variables around it, or has defaults, breaks a graph, and is called each time. It
    computes with operators and functions of PyTorch (``torch.where``, ``&``, ``torch.sigmoid``), and may ask by name
    for ``n``, the rows of the sequence, and ``targets``, a score also for ``heads`` and ``alpha``.

    Returns:
        (L, heads, hidden_dim).

    Raises:
        hstujit.errors.InvalidArgumentError: a function that cannot be traced; the sentence has its line.
        hstujit.errors.InvalidConfigError: a text with a mistake; the sentence has its column.
    """
    if q.dim() != 3:
        raise InvalidArgumentError(f"q has shape {shown(tuple(q.shape))}; it must be (L, heads, attn_dim)")
    if mask is not None:
        parameters["mask"] = (_mask_text_now if _may_change(mask) else _mask_text)(mask)
    named = dict(operands or {})
    if score is not None:
        facts = [facts_of(name, value, q, k.shape[0]) for name, value in named.items()]
        if torch.compiler.is_dynamo_compiling():
            parameters["score"], kinds = (_text_now if _may_change(score) else _constant_text)(score, *facts)
        else:
            reads = Reads(facts, q, k.shape[0])
            parameters["score"], kinds = _score_text(score, reads)
            named.update(reads.tensors)
        if named:
            parameters["operands"], parameters["operand_tensors"] = declared(named, kinds, q)
    elif named:
        raise InvalidArgumentError(f"operands has {', '.join(named)}, and there is no score that reads them")
    if "contextual_seq_len" in parameters:
        parameters |= contexts_of(parameters.pop("contextual_seq_len"), seq_offsets)
    parameters.setdefault("precision", fp32_precision())
    call = q, k, v, seq_offsets, max_seq_len, max(q.shape[2], 1) ** -0.5 if alpha is None else alpha
    return _ops.hstu_attention(
        *call,
        num_targets=like_offsets(num_targets, seq_offsets),
        rab=rab,
        attn_scale=attn_scale,
        scaling_seqlen=scaling_seqlen,
        **dropout_of(dropout_ratio, training, q, seed),
        **parameters,
    )
