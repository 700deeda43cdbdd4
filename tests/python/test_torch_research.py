"""A research model with HSTU's bias of positions and times trains with STULayer as it does in plain PyTorch."""

import json
import pathlib
import re
import unittest

from torch_support import torch

if torch:
    from torch.nn import functional as F

    from hstujit.torch import STULayer, STULayerConfig

PRESET = pathlib.Path(__file__).resolve().parents[2] / "examples" / "presets" / "hstu_bias.json"
ITEMS, WIDTH, HEADS, DIM, LONGEST, LAYERS, STEPS = 40, 64, 8, 32, 211, 2, 5


def preset():
    """The instance of the public config: 8 heads of 32, and 211 rows."""
    text = re.sub(r"^\s*//.*$", "", PRESET.read_text(encoding="utf-8"), flags=re.M)
    return json.loads(text)["ops"][0]


class Plain(torch.nn.Module if torch else object):
    """The model in plain PyTorch, one sequence after the other. It has the parameters of both models."""

    def __init__(self):
        super().__init__()
        self.items = torch.nn.Embedding(ITEMS, WIDTH)
        columns, rows = HEADS * DIM, torch.nn.ParameterList
        self.uvqk = rows(0.05 * torch.randn(WIDTH, 4 * columns) for _ in range(LAYERS))
        self.output = rows(0.05 * torch.randn(3 * columns, WIDTH) for _ in range(LAYERS))
        self.by_position = rows(0.2 * torch.randn(2 * LONGEST - 1) for _ in range(LAYERS))
        self.by_time = rows(0.2 * torch.randn(129) for _ in range(LAYERS))

    def attend(self, layer, q, k, v, times):
        """RelativeBucketedTimeAndPositionBasedBias, and silu attention that is causal."""
        place = torch.arange(len(times))
        following = torch.cat([times[1:], times[-1:]])
        age = (following[:, None] - times).abs().clamp(min=1).float()
        bias = self.by_position[layer][place - place[:, None] + LONGEST - 1]
        bias = bias + self.by_time[layer][(age.log() / 0.301).long().clamp(0, 128)]
        products = torch.einsum("ihd,jhd->hij", q, k) / DIM**0.5
        weights = (F.silu(products + bias) / LONGEST).tril()
        return torch.einsum("hij,jhd->ihd", weights, v)

    def forward(self, items, times, offsets):
        x = self.items(items)
        for layer in range(LAYERS):
            projected = F.layer_norm(x, (WIDTH,), eps=1e-6) @ self.uvqk[layer]
            u, v, q, k = (part.unflatten(1, (HEADS, DIM)) for part in projected.split(HEADS * DIM, 1))
            bounds = list(zip(offsets.tolist(), offsets.tolist()[1:]))
            attn = torch.cat([self.attend(layer, q[a:b], k[a:b], v[a:b], times[a:b]) for a, b in bounds]).flatten(1)
            u = F.silu(u.flatten(1))
            gated = torch.cat([u, attn, u * F.layer_norm(attn, (HEADS * DIM,), eps=1e-6)], 1)
            x = x + gated @ self.output[layer]
        return F.normalize(x, dim=1) @ F.normalize(self.items.weight, dim=1).T / 0.1


class Ours(torch.nn.Module if torch else object):
    def __init__(self, plain):
        super().__init__()
        instance = preset()
        assert (instance["heads"], instance["attn_dim"], instance["max_seq_len"]) == (HEADS, DIM, LONGEST)
        config = STULayerConfig(
            WIDTH, HEADS, DIM, DIM, output_dropout_ratio=0.0, precision="ieee", score=instance["score"],
            operands=instance["operands"],
        )  # fmt: skip
        self.items = torch.nn.Embedding.from_pretrained(plain.items.weight.detach().clone(), freeze=False)
        self.layers = torch.nn.ModuleList(STULayer(config) for _ in range(LAYERS))
        self.by_position = torch.nn.ParameterList(table.detach().clone() for table in plain.by_position)
        self.by_time = torch.nn.ParameterList(table.detach().clone() for table in plain.by_time)
        for layer, uvqk, output in zip(self.layers, plain.uvqk, plain.output):
            for name, parameter in layer.named_parameters():
                parameter.requires_grad_(name in ("_uvqk_weight", "_output_weight"))
            layer._uvqk_weight.data.copy_(uvqk)
            layer._output_weight.data.copy_(output)

    def forward(self, items, times, offsets):
        x = self.items(items)
        for layer, by_position, by_time in zip(self.layers, self.by_position, self.by_time):
            operands = {"ts": times, "pos_w": by_position, "ts_w": by_time}
            x = layer(x, offsets.diff(), offsets, LONGEST, operands=operands)
        return F.normalize(x, dim=1) @ F.normalize(self.items.weight, dim=1).T / 0.1


def batch(seed, lengths=(LONGEST, 60, 131)):
    """Histories in which an item follows from the one before, and their times in seconds."""
    draw = torch.Generator().manual_seed(seed)
    rows = sum(lengths)
    offsets = F.pad(torch.tensor(lengths).cumsum(0), (1, 0))
    place = torch.arange(rows) - offsets[:-1].repeat_interleave(torch.tensor(lengths))
    items = torch.randint(ITEMS, (len(lengths),), generator=draw).repeat_interleave(torch.tensor(lengths)) + 7 * place
    steps = torch.exp(12 * torch.rand(rows, generator=draw)).long()
    return items % ITEMS, 1_000_000_000 + steps.cumsum(0), offsets, (items + 7) % ITEMS


@unittest.skipUnless(torch, "PyTorch is not installed")
class Research(unittest.TestCase):
    def test_the_loss_curve_is_that_of_plain_pytorch(self):
        torch.manual_seed(7)
        plain = Plain()
        models = [Ours(plain), plain]
        optimizers = [torch.optim.Adam(filter(lambda p: p.requires_grad, m.parameters()), lr=0.01) for m in models]
        curves = [[], []]
        for step in range(STEPS):
            *inputs, following = batch(step)
            for model, optimizer, curve in zip(models, optimizers, curves):
                loss = F.cross_entropy(model(*inputs), following)
                optimizer.zero_grad()
                loss.backward()
                if step == 0:
                    for table in (*model.by_position, *model.by_time):
                        self.assertGreater(table.grad.norm(), 1e-6)
                optimizer.step()
                curve.append(loss.item())
        for own, other in zip(*curves):
            self.assertAlmostEqual(own, other, delta=1e-4 * other)
        self.assertLess(curves[0][-1], 0.1 * curves[0][0])
        ours, theirs = (torch.cat([*model.by_position, *model.by_time]) for model in models)
        self.assertLess((ours - theirs).abs().max(), 1e-3)  # of up to 0.05 that each entry has moved
