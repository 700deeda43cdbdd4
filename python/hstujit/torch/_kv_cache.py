"""The rows that a layer keeps for later calls: the first ones of each sequence, of keys and values."""

from __future__ import annotations

from dataclasses import dataclass

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
        batch = seq_offsets.numel() - 1
        if lengths.shape != (batch,):
            raise InvalidArgumentError(
                f"kv_caching_lengths has shape {tuple(lengths.shape)}; it must be (B) = ({batch}), as {of_offsets}"
            )
        longest, rows = max_len, None
        if is_readable(lengths, seq_offsets):
            longest, rows = _read(lengths, max_len, seq_offsets.diff())
        elif not max_len:
            longest = int(lengths.max().item())
        offsets = complete_cumsum(integers_as("kv_caching_lengths", lengths, seq_offsets.dtype))
        return cls(offsets, seq_offsets - offsets, longest, rows)

    def first_rows(self, values: torch.Tensor) -> torch.Tensor:
        left, _ = split_2D_jagged(
            self.longest, values, total_len_left=self.rows, offsets_left=self.offsets, offsets_right=self.rest
        )
        return left


def _read(lengths: torch.Tensor, max_len: int, rows: torch.Tensor) -> tuple[int, int]:
    """The longest one, or ``max_len`` where that is given, and their sum. It waits for a GPU once."""
    if not lengths.numel():
        return max_len, 0
    lengths, rows = lengths.long(), rows.long()
    wrong = (lengths < 0) | (lengths > rows)
    longest, total, is_wrong = torch.stack([lengths.max(), lengths.sum(), wrong.any().long()]).tolist()
    if is_wrong:
        index = int(wrong.nonzero()[0])
        raise InvalidArgumentError(
            f"kv_caching_lengths[{index}] is {int(lengths[index])}; it must be from 0 to {int(rows[index])}, the rows "
            "of its sequence"
        )
    if max_len and max_len < longest:
        raise InvalidArgumentError(f"max_kv_caching_len is {max_len}; it must be at least {longest}, the longest, or 0")
    return max_len or longest, total
