"""float64 references of what the peer scripts compare: attention, and a whole layer. They follow docs/ops-attention.md and
docs/ops-layers.md, and share nothing with any way that is timed. Autograd gives the gradients.
"""

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

EPS = 1e-6


def sees(rows, targets=0, max_attn_len=0, contextual_seq_len=0, sla_k1=0, sla_k2=0, device=None):
    """Which rows of a sequence see which columns: a matrix of booleans."""
    position = torch.arange(rows, device=device)
    if sla_k1 or sla_k2:
        row, column = position[:, None], position[None, :]
        first, history = max(sla_k2, contextual_seq_len), rows - targets
        local = (column <= row) & ((column < first) | (column > row - sla_k1))
        return torch.where(row < history, local, column < history)
    last = rows - targets
    if contextual_seq_len:
        position = (position - contextual_seq_len + 1).clamp(min=0)
        last -= contextual_seq_len - 1
    position = position.clamp(max=last)
    ahead = position[:, None] - position[None, :]
    seen = ahead > 0
    if max_attn_len:
        seen &= ahead <= max_attn_len
    if contextual_seq_len:
        seen |= (position[:, None] == 0) & (position[None, :] < last)
    return seen | torch.eye(rows, dtype=torch.bool, device=device)


def _of_sequence(q, k, v, seen, alpha, max_seq_len):
    scores = alpha * torch.einsum("nha,mha->hnm", q, k)
    return torch.einsum("hnm,mhd->nhd", F.silu(scores) / max_seq_len * seen, v)


def _groups(heads, rows):
    """Ranges of heads whose scores are in memory at the same time: a GiB of each matrix, or one head."""
    together = max(1, min(heads, (1 << 30) // max(8 * rows * rows, 1)))
    return [slice(first, first + together) for first in range(0, heads, together)]


def attention(q, k, v, offsets, max_seq_len, alpha, num_targets=None, **mask):
    """(L, heads, hidden_dim) in float64. The scores of one sequence at a time are in memory, also for gradients."""
    q, k, v = (tensor.double() for tensor in (q, k, v))
    bounds = offsets.tolist()
    targets = [0] * (len(bounds) - 1) if num_targets is None else num_targets.tolist()
    parts = []
    for begin, end, count in zip(bounds, bounds[1:], targets):
        seen = sees(end - begin, count, device=q.device, **mask)
        heads = [checkpoint(_of_sequence, *(tensor[begin:end, group] for tensor in (q, k, v)), seen, alpha, max_seq_len, use_reentrant=False)
                 for group in _groups(q.shape[1], end - begin)]
        parts.append(torch.cat(heads, 1))
    return torch.cat(parts)


def rounded(layer, dtype):
    """Parameters of a layer by name, as the layer rounds them to the type of rows, in float64."""
    return {name: value.detach().to(dtype).double().requires_grad_() for name, value in layer.named_parameters()}


def layer(x, weights, offsets, max_seq_len, num_targets, heads, attn_dim, hidden_dim):
    """A layer without dropout, in float64. `weights` are named as those of both packages."""
    normed = F.layer_norm(x, x.shape[1:], weights["_input_norm_weight"], weights["_input_norm_bias"], EPS)
    uvqk = torch.addmm(weights["_uvqk_beta"], normed, weights["_uvqk_weight"])
    hidden, attn = heads * hidden_dim, heads * attn_dim
    u, v, q, k = uvqk.split([hidden, hidden, attn, attn], dim=1)
    u = F.silu(u)
    q, k, v = (tensor.reshape(len(x), heads, -1) for tensor in (q, k, v))
    seen = attention(q, k, v, offsets, max_seq_len, attn_dim**-0.5, num_targets).reshape(len(x), hidden)
    gated = u * F.layer_norm(seen, seen.shape[1:], weights["_output_norm_weight"], weights["_output_norm_bias"], EPS)
    return torch.addmm(x, torch.cat([u, seen, gated], 1), weights["_output_weight"])
