"""Parts of train_ranker.py: batches of users, the layer of HSTU in plain PyTorch, and the model."""

import dataclasses

import torch
from torch.nn.functional import layer_norm, silu

ITEMS, TASTES, CANDIDATES = 64, 4, 16
EPS = 1e-6


@dataclasses.dataclass
class Batch:
    """B users: histories, each with its candidates behind it, as L rows one after the other."""

    items: torch.Tensor  # (L)
    positions: torch.Tensor  # (L), in the sequence
    lengths: torch.Tensor  # (B)
    offsets: torch.Tensor  # (B + 1)
    targets: torch.Tensor  # (B), how many candidates each has
    target_rows: torch.Tensor  # (B * CANDIDATES), where they are
    labels: torch.Tensor  # (B * CANDIDATES), whether the user likes it

    def to(self, device):
        return Batch(*(getattr(self, field.name).to(device) for field in dataclasses.fields(self)))


def make_batch(histories, users, seed):
    """``users`` of them, drawn from ``histories``, the lengths. The taste of an item is its remainder by TASTES."""
    draw = torch.Generator().manual_seed(seed)

    def integers(high, size):
        return torch.randint(high, (size,), generator=draw)

    lengths = histories[integers(len(histories), users)] + CANDIDATES
    offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    rows = int(offsets[-1])
    positions = torch.arange(rows) - offsets[:-1].repeat_interleave(lengths)
    target_rows = (offsets[1:, None] - CANDIDATES + torch.arange(CANDIDATES)).flatten()
    tastes = integers(TASTES, users).repeat_interleave(lengths)
    likely = torch.full((rows,), 0.8)
    likely[target_rows] = 0.5
    liked = torch.rand(rows, generator=draw) < likely
    shift = torch.where(liked, 0, 1 + integers(TASTES - 1, rows))
    items = integers(ITEMS // TASTES, rows) * TASTES + (tastes + shift) % TASTES
    # One label in ten is wrong: of a model that is too sure, the loss shows the rounding of a single product.
    labels = (liked[target_rows] ^ (torch.rand(len(target_rows), generator=draw) < 0.1)).float()
    return Batch(items, positions, lengths, offsets, torch.full((users,), CANDIDATES), target_rows, labels)


class PlainSTULayer(torch.nn.Module):
    """Computes what ``hstujit.torch.STULayer`` does, with the same config, parameters and call.

    Dropout, windows and group norm are left out. Attention pads sequences to the longest of the batch.
    """

    def __init__(self, config):
        super().__init__()
        self.config = config
        width, heads = config.embedding_dim, config.num_heads
        v, qk = heads * config.hidden_dim, heads * config.attention_dim
        self._columns = [v, v, qk, qk]
        self._uvqk_weight = torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(width, 2 * (v + qk))))
        self._uvqk_beta = torch.nn.Parameter(torch.zeros(2 * (v + qk)))
        self._input_norm_weight = torch.nn.Parameter(torch.ones(width))
        self._input_norm_bias = torch.nn.Parameter(torch.zeros(width))
        self._output_weight = torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(3 * v, width)))
        self._output_norm_weight = torch.nn.Parameter(torch.ones(v))
        self._output_norm_bias = torch.nn.Parameter(torch.zeros(v))

    def forward(self, x, x_lengths, x_offsets, max_seq_len, num_targets):
        """(L, width), the rows of all sequences, one after the other; under autocast, which casts the weights.

        Args:
            x: (L, width).
            x_lengths: (B), rows of each sequence.
            x_offsets: (B + 1), where sequences begin.
            max_seq_len: what scores are divided by.
            num_targets: (B), last rows of each sequence that do not see each other.
        """
        normed = layer_norm(x, x.shape[1:], self._input_norm_weight, self._input_norm_bias, EPS)
        u, v, q, k = torch.addmm(self._uvqk_beta, normed, self._uvqk_weight).split(self._columns, dim=1)
        u = silu(u)

        # Row r of sequence b is row b * longest + r of what is padded.
        batch, longest = x_lengths.numel(), int(x_lengths.max())
        starts = torch.arange(batch, device=x.device) * longest - x_offsets[:-1]
        rows = torch.arange(x.size(0), device=x.device) + starts.repeat_interleave(x_lengths, output_size=x.size(0))
        q, k, v = (self._padded(tensor, rows, batch, longest) for tensor in (q, k, v))
        scores = silu(q @ k.mT * self.config.attention_dim**-0.5) / max_seq_len
        attn = torch.where(visible(x_lengths, num_targets, longest), scores, 0) @ v  # (B, H, longest, hidden_dim)
        attn = attn.transpose(1, 2).flatten(0, 1).flatten(1).index_select(0, rows)

        gated = u * layer_norm(attn, attn.shape[1:], self._output_norm_weight, self._output_norm_bias, EPS)
        return x + torch.cat([u, attn, gated.to(x.dtype)], dim=1) @ self._output_weight

    def _padded(self, x, rows, batch, longest):
        """(B, H, longest, d) of (L, H * d), with zeroes behind each sequence."""
        padded = x.new_zeros(batch * longest, x.size(1)).index_copy(0, rows, x)
        return padded.view(batch, longest, self.config.num_heads, -1).transpose(1, 2)


def visible(lengths, num_targets, longest):
    """(B, 1, longest, longest), which columns a row sees: itself, and those before it that are no targets."""
    ids = torch.arange(longest, device=lengths.device).minimum((lengths - num_targets)[:, None])
    itself = torch.eye(longest, dtype=torch.bool, device=lengths.device)
    return ((ids[:, :, None] > ids[:, None, :]) | itself)[:, None]


class Ranker(torch.nn.Module):
    """Embeddings of items and positions, layers of HSTU, and a score of each candidate."""

    def __init__(self, layer, config, layers, max_seq_len, dtype):
        super().__init__()
        self.max_seq_len, self.dtype = max_seq_len, dtype
        self.items = torch.nn.Embedding(ITEMS, config.embedding_dim)
        self.positions = torch.nn.Embedding(max_seq_len, config.embedding_dim)
        torch.nn.init.normal_(self.items.weight, std=0.1)
        torch.nn.init.normal_(self.positions.weight, std=0.02)
        self.layers = torch.nn.ModuleList(layer(config) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(config.embedding_dim)
        self.score = torch.nn.Linear(config.embedding_dim, 1)

    def forward(self, batch):
        """(B * CANDIDATES), logits."""
        # Parameters and the optimizer are fp32, and products 16 bits by autocast, as models are trained: a weight of 16
        # bits would lose every step that is smaller than its last bit.
        with torch.autocast(batch.items.device.type, self.dtype):
            x = (self.items(batch.items) + self.positions(batch.positions)).to(self.dtype)
            for layer in self.layers:
                x = layer(x, batch.lengths, batch.offsets, self.max_seq_len, batch.targets)
            return self.score(self.norm(x[batch.target_rows])).flatten().float()
