"""Attention whose score and mask are texts or functions of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import torch

from .._words import check_type, shown
from ..errors import InvalidArgumentError
from ._arguments import contexts_of, dropout_of, fp32_precision, integers_as, like_offsets
from ._operands import Facts, Operand, Reads, declared, declared_facts, facts_of
from ._schema import OPERATORS as _ops
from ._tracing import Term, Unavailable, reads_nothing_else, text_of

Function = Callable[..., Any]

_BATCH = Unavailable("b", "an instance says the same for all sequences of a batch")
_HEAD_OF_MASK = Unavailable("h", "a mask is the same for all heads")
_PLACE = Term("row"), Term("col")
_MASK = (_BATCH, _HEAD_OF_MASK, *_PLACE), {name: Term(name) for name in ("n", "targets")}
_SCORE = (Term("x"), _BATCH, Term("head"), *_PLACE), {name: Term(name) for name in ("n", "targets", "heads", "alpha")}
_ASKED = {"mask": _MASK, "score": _SCORE, "softmax_score": _SCORE}

Texts = tuple[tuple[str | None, ...], tuple[str, ...]]


def _texts(reads: Reads, *functions: str | Function | None) -> Texts:
    """The texts of a mask, a score and a softmax_score, and the kinds of the operands that they read."""
    texts = []
    for (what, (terms, names)), function in zip(_ASKED.items(), functions, strict=True):
        if isinstance(function, str):
            for operand in reads.named.values():
                operand.read_in(function)
        elif function is not None:
            function = text_of(what, function, terms, names | reads.named, is_condition=what == "mask", reader=reads)
        texts.append(function)
    return tuple(texts), reads.kinds()


def _constant_texts(named: tuple[Facts, ...], *functions: str | Function | None) -> Texts:
    return _texts(Reads(named), *functions)


# In a graph of torch.compile a text is a constant, as by torch.compiler.assume_constant_result, which imports
# torch._dynamo. Nothing guards what is around a function: one that reads it breaks the graph and is traced each time.
_texts_now: Function = torch._disable_dynamo(_constant_texts)
for _constant in (_constant_texts, reads_nothing_else):
    _constant._dynamo_marked_constant = True  # type: ignore[union-attr]


def _may_change(function: str | Function | None) -> bool:
    if not isinstance(function, FunctionType) or function.__code__.co_freevars:
        return not isinstance(function, str | None)
    return bool(function.__defaults__ or function.__kwdefaults__) or not reads_nothing_else(function)


def scores_of(score: Any, softmax_score: Any, all_softmax: bool) -> tuple[Any, Any]:
    """A score alone is that of the softmax where all heads have one, as FlexAttention's."""
    return (None, score) if all_softmax and softmax_score is None else (score, softmax_score)


def texts_of(operands: str, *functions: str | Function | None) -> tuple[str | None, ...]:
    """The texts of a mask, a score and a softmax_score, which read what ``operands`` declares, and no other tensors."""
    check_type("operands", operands, str, "a text, such as 'ts: row(int64)'")
    return _constant_texts(tuple(declared_facts(operands)), *functions)[0]


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    seq_offsets: torch.Tensor,
    max_seq_len: int,
    *,
    score: str | Function | None = None,
    softmax_score: str | Function | None = None,
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
            before it is divided. None: silu. Where all heads have softmax, it is softmax_score.
        softmax_score: the same of what the first heads normalise, as many as ``num_softmax_heads`` says. None: x.
        mask: a text, or ``mask(b, h, row, col)``: whether row attends to col. None: what ``parameters`` say, causal.
        alpha: factor of the dot products. None: attn_dim ** -0.5.
        num_targets: (B), targets at the end of each sequence.
        rab: (B, bias heads, max_seq_len, max_seq_len), added to the dot products before alpha.
        attn_scale: (L) or (1), fp32: factors of the rows, in place of the division.
        operands: tensors that the score or the mask reads, by name: ``ts[row + 1]``. How one is read says whether that
            has an element for each row, is a table, or has one for each head; ``hstujit.torch.row``, ``table``,
            ``head``, ``scalar``, ``sequence`` and ``pair`` say it where that is not enough. A function asks for them by
            name. It may read tensors that are around it, too, but in ``torch.compile``.
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
    if not isinstance(q, torch.Tensor) or q.dim() != 3:
        found = f"has shape {shown(tuple(q.shape))}" if isinstance(q, torch.Tensor) else f"is {shown(q)}"
        raise InvalidArgumentError(f"q {found}; it must be a tensor (L, heads, attn_dim)")
    if isinstance(alpha, torch.Tensor) and alpha.requires_grad:
        raise InvalidArgumentError("alpha requires a gradient, which it has none of; multiply q by it instead")
    named = {} if operands is None else operands
    check_type("operands", named, Mapping, "a mapping from names to tensors")
    named = dict(named)
    functions = mask, *scores_of(score, softmax_score, parameters.get("num_softmax_heads") == q.shape[1])
    if named and functions == (None, None, None):
        raise InvalidArgumentError(f"operands has {', '.join(named)}, and there is no score that reads them")
    facts = tuple(facts_of(name, value, q, k.shape[0]) for name, value in named.items())
    if torch.compiler.is_dynamo_compiling():
        makes = _texts_now if any(map(_may_change, functions)) else _constant_texts
        texts, kinds = makes(facts, *functions)
    else:
        reads = Reads(facts, q, k.shape[0])
        texts, kinds = _texts(reads, *functions)
        named.update(reads.tensors)
    parameters |= {name: text for name, text in zip(_ASKED, texts) if text is not None}
    if named:
        parameters["operands"], parameters["operand_tensors"] = declared(named, kinds, q)
    if parameters.get("attn_func") is not None:
        parameters["attn_func"] = integers_as("attn_func", parameters["attn_func"], torch.int32)
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
