"""Some rows of each sequence: the first ones, whose keys and values a layer keeps, and the last ones, its targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..errors import InvalidArgumentError
from ._arguments import integers_as, is_readable
from .functional import complete_cumsum, split_2D_jagged


@dataclass
class Kept:
    """The first rows of each sequence, which a cache has."""

    offsets: torch.Tensor  # (B + 1)
    rest: torch.Tensor  # (B + 1), of the rows that are not kept
    longest: int
    rows: int | None  # of all sequences; None: not read

    @classmethod
    def of(cls, lengths: torch.Tensor | None, max_len: int, seq_offsets: torch.Tensor, of_offsets: str) -> Kept | None:
        """
        Args:
            lengths: ``kv_caching_lengths`` of a call, which are checked. None: nothing is kept.
            max_len: its ``max_kv_caching_len``.
            of_offsets: what a caller knows ``seq_offsets`` as.
        """
        if lengths is None:
            return None
        _check_shape("kv_caching_lengths", lengths, seq_offsets, of_offsets)
        longest, rows = max_len, None
        if is_readable(lengths, seq_offsets):
            longest, rows = _read("kv_caching_lengths", lengths, seq_offsets.diff())
            if max_len and max_len < longest:
                raise InvalidArgumentError(
                    f"max_kv_caching_len is {max_len}; it must be at least {longest}, the longest, or 0"
                )
            longest = max_len or longest
        elif not max_len:
            longest = int(lengths.max().item())
        offsets = complete_cumsum(integers_as("kv_caching_lengths", lengths, seq_offsets.dtype))
        return cls(offsets, seq_offsets - offsets, longest, rows)

    def first_rows(self, values: torch.Tensor) -> torch.Tensor:
        left, _ = split_2D_jagged(
            self.longest, values, total_len_left=self.rows, offsets_left=self.offsets, offsets_right=self.rest
        )
        return left


def last_rows_of(
    counts: torch.Tensor, seq_offsets: torch.Tensor, longest: int | None, total: int | None, numbered: bool
) -> dict[str, Any]:
    """Arguments of ``stu_layer`` for so many last rows of each sequence, with their numbers where they are wanted.

    Where one of ``longest`` and ``total``, the largest count and the sum of all, is None both are read.
    """
    _check_shape("num_targets", counts, seq_offsets, "x_offsets")
    counts = integers_as("num_targets", counts, seq_offsets.dtype)
    if longest is None or total is None:
        longest, total = _read("num_targets", counts, seq_offsets.diff())
    offsets = complete_cumsum(counts)
    last = {"seq_offsets_q": offsets, "max_delta_len": longest, "out_rows": total}
    if numbered:
        rows = torch.arange(total, device=counts.device)
        sequence = torch.bucketize(rows, offsets[1:].long(), right=True).clamp(max=counts.numel() - 1)
        last["row_numbers"] = rows + (seq_offsets - offsets)[1:].long()[sequence]
    return last


def _check_shape(name: str, lengths: torch.Tensor, seq_offsets: torch.Tensor, of: str) -> None:
    batch = seq_offsets.numel() - 1
    if lengths.shape != (batch,):
        raise InvalidArgumentError(f"{name} has shape {tuple(lengths.shape)}; it must be (B) = ({batch}), as {of}")


def _read(name: str, lengths: torch.Tensor, rows: torch.Tensor) -> tuple[int, int]:
    """The longest one and their sum. It waits for a GPU once."""
    if not lengths.numel():
        return 0, 0
    lengths, rows = lengths.long(), rows.long()
    wrong = (lengths < 0) | (lengths > rows)
    longest, total, is_wrong = torch.stack([lengths.max(), lengths.sum(), wrong.any().long()]).tolist()
    if is_wrong:
        index = int(wrong.nonzero()[0])
        length, most = int(lengths[index]), int(rows[index])
        raise InvalidArgumentError(
            f"{name}[{index}] is {length}; it must be from 0 to {most}, the rows of its sequence"
        )
    return longest, total
