#!/usr/bin/env python3
"""A small sequence model with hstu-jit's attention: trained, compiled, and exported with lengths that may change.

    python examples/torch_attention.py [--steps 60]

Items repeat with a fixed period, and the model learns to tell the next one. It runs on a GPU, or else on the CPU with
the wheel hstujit-host.
"""

import argparse

import torch

import hstujit.torch  # noqa: F401  registers torch.ops.hstujit

ITEMS, WIDTH, HEADS, MAX_SEQ_LEN = 12, 64, 2, 64


class Recommender(torch.nn.Module):
    """One layer of HSTU: embeddings with positions, a norm, gated attention, and scores of the next item."""

    def __init__(self):
        super().__init__()
        self.items = torch.nn.Embedding(ITEMS, WIDTH)
        torch.nn.init.normal_(self.items.weight, std=0.1)
        self.positions = torch.nn.Parameter(0.1 * torch.randn(MAX_SEQ_LEN, WIDTH))
        self.projection = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.output = torch.nn.Linear(WIDTH, WIDTH)
        values = (torch.ones(WIDTH), torch.zeros(WIDTH), torch.ones(WIDTH), torch.zeros(WIDTH))
        self.norms = torch.nn.ParameterList(values)

    def forward(self, items, seq_offsets):
        ops = torch.ops.hstujit
        x = ops.add_positional_embeddings(self.items(items), self.positions, 1.0, seq_offsets)
        u, v, q, k = torch.nn.functional.silu(self.projection(ops.layer_norm(x, self.norms[0], self.norms[1]))).split(
            WIDTH, dim=1
        )
        heads = (-1, HEADS, WIDTH // HEADS)
        attention = ops.hstu_attention(
            q.reshape(heads), k.reshape(heads), v.reshape(heads), seq_offsets, MAX_SEQ_LEN, HEADS / WIDTH
        )
        gated = ops.hstu_norm_mul_dropout(attention.flatten(1), u.contiguous(), self.norms[2], self.norms[3])
        return (x + self.output(gated)) @ self.items.weight.T


def batch(device, sequences=16):
    """Histories of different lengths, one after the other, and the item that follows each row."""
    lengths = torch.randint(8, MAX_SEQ_LEN, (sequences,))
    seq_offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    rows = torch.arange(int(seq_offsets[-1])) - seq_offsets[:-1].repeat_interleave(lengths)
    first = torch.randint(ITEMS, (sequences,)).repeat_interleave(lengths)
    items = (first + 5 * rows) % ITEMS
    return items.to(device), seq_offsets.to(device), ((items + 5) % ITEMS).to(device)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Recommender().to(device)
    step = torch.compile(model, fullgraph=True, dynamic=True, backend="inductor" if device == "cuda" else "aot_eager")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for index in range(options.steps):
        items, seq_offsets, following = batch(device)
        loss = torch.nn.functional.cross_entropy(step(items, seq_offsets), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index % 10 == 0 or index == options.steps - 1:
            print(f"step {index:3d}  loss {loss.item():.4f}")

    items, seq_offsets, _ = batch(device)
    rows, sequences = torch.export.Dim("rows", min=2), torch.export.Dim("sequences", min=3)
    with torch.no_grad():
        program = torch.export.export(model, (items, seq_offsets), dynamic_shapes=({0: rows}, {0: sequences}))
        items, seq_offsets, following = batch(device, sequences=5)
        scores = program.module()(items, seq_offsets)
    print(f"exported: {(scores.argmax(1) == following).float().mean():.0%} of the next items are right")


if __name__ == "__main__":
    main()
