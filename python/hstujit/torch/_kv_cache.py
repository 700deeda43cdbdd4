"""What a layer keeps for later calls: first rows of each sequence, of keys and values."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .._calls import LARGEST_COUNT
from .._words import counted, shown
from ..errors import InvalidArgumentError
from ._arguments import integers_as, is_readable
from ._dtypes import dtype_name
from .functional import complete_cumsum, split_2D_jagged


def check_longest(max_kv_caching_len: int) -> None:
    """Of every call, also of one that keeps nothing."""
    if not torch.compiler.is_compiling() and not 0 <= max_kv_caching_len < LARGEST_COUNT:
        raise InvalidArgumentError(
            f"max_kv_caching_len is {shown(max_kv_caching_len)}; it must be an integer from 0 to {LARGEST_COUNT - 1}"
        )


@dataclass
class Kept:
    """The first rows of each sequence, which a cache has."""

    offsets: torch.Tensor  # (B + 1)
    rest: torch.Tensor  # (B + 1), of the rows that are not kept
    longest: int
    rows: int | None  # of all sequences; None: not read

    @classmethod
    def of(cls, lengths: torch.Tensor, max_len: int, seq_offsets: torch.Tensor, of_offsets: str) -> Kept:
        """
        Args:
            lengths: ``kv_caching_lengths`` of a call, which are checked.
            max_len: its ``max_kv_caching_len``, which :func:`check_longest` has seen.
            of_offsets: what a caller knows ``seq_offsets`` as.
        """
        batch = seq_offsets.numel() - 1
        if lengths.dtype not in (torch.int32, torch.int64):
            raise InvalidArgumentError(
                f"kv_caching_lengths has dtype {dtype_name(lengths.dtype)}; it must be int32 or int64"
            )
        if lengths.dim() != 1:
            raise InvalidArgumentError(
                f"kv_caching_lengths has rank {lengths.dim()}, shape {tuple(lengths.shape)}; it must be (B)"
            )
        if lengths.size(0) != batch:
            raise InvalidArgumentError(
                f"kv_caching_lengths.shape[0] is {lengths.size(0)}; it must be B = {batch}, as in {of_offsets}"
            )
        if lengths.device != seq_offsets.device:
            raise InvalidArgumentError(
                f"kv_caching_lengths is on {lengths.device}; it must be on {seq_offsets.device}, as {of_offsets}"
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
    are_wrong = ((lengths < 0) | (lengths > rows)).any().long()
    longest, total, is_wrong = torch.stack([lengths.max(), lengths.sum(), are_wrong]).tolist()
    for index, (length, there) in enumerate(zip(lengths.tolist(), rows.tolist()) if is_wrong else ()):
        if length < 0:
            raise InvalidArgumentError(f"kv_caching_lengths[{index}] is {length}; it must be at least 0")
        if length > there:
            raise InvalidArgumentError(
                f"kv_caching_lengths[{index}] is {length}; sequence {index} has {counted(there, 'row')}"
            )
    if max_len and max_len < longest:
        index = int(lengths.argmax().item())
        raise InvalidArgumentError(
            f"max_kv_caching_len is {max_len}; it must be at least kv_caching_lengths[{index}] = {longest}, or 0"
        )
    return max_len or longest, total
