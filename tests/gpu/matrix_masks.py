"""The matrix's instances of masks that users write: those of docs/expressions.md, and conditions drawn at random."""

import itertools
import random

from matrix_attention import LENGTHS, TYPES, instance

MASKS = {
    "sinks": "col <= row and (row - col < 100 or col < 4)",
    "blocks": "row // 64 == col // 64",
    "strided": "col <= row and (row // 64 == col // 64 or col % 128 == 0)",
    "dilated": "0 <= row - col < 96 and (row - col) % 4 == 0",
    "prefix": "col <= row or col < 16",
    "targets": "where(row < n - targets, col <= row, col < n - targets or col == row)",
    "both_ways": "abs(row - col) <= 32",
    "none": "col < row - n",
}
DIMENSIONS = ((64, 64), (128, 128), (64, 128), (40, 40))
KINDS = ("bf16", "fp16", "tf32", "bf16_sm80")


class Text:
    """Conditions of a few operators, whose numbers stay small."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def number(self, depth):
        simple = [lambda: self.draw.choice(("row", "col", "row", "col", "n", "targets")), lambda: str(self.draw.randint(0, 300))]
        one = lambda: self.number(depth - 1)
        nested = [
            lambda: f"({one()} {self.draw.choice('+-')} {one()})",
            lambda: f"({self.number(0)} // {self.draw.choice((2, 3, 16, 64, 100))})",
            lambda: f"({one()} % {self.draw.choice((2, 3, 16, 64, 100))})",
            lambda: f"({self.draw.randint(-2, 3)} * {one()})",
            lambda: f"{self.draw.choice(('min', 'max'))}({one()}, {one()})",
            lambda: f"abs({one()})",
            lambda: f"where({self.condition(depth - 1)}, {one()}, {one()})",
        ]
        return self.draw.choice(simple if depth <= 0 or self.draw.random() < 0.5 else nested)()

    def condition(self, depth):
        if depth <= 0 or self.draw.random() < 0.3:
            return f"{self.number(depth)} {self.draw.choice(('<', '<=', '>', '>=', '==', '!='))} {self.number(depth)}"
        one = lambda: self.condition(depth - 1)
        return self.draw.choice((
            lambda: f"({one()}) and ({one()})",
            lambda: f"({one()}) or ({one()})",
            lambda: f"not ({one()})",
            lambda: f"where({one()}, {one()}, {one()})",
        ))()


def mask_instances(seed=1, count=120):
    for name, mask in MASKS.items():
        for kind, dims in itertools.product(KINDS, DIMENSIONS):
            yield instance(f"mask_{name}-{kind}-{dims[0]}x{dims[1]}", dims, mask=mask, **TYPES[kind],
                           **({"num_targets": 20} if "targets" in mask else {}))
    for i in range(count):
        text = Text(f"{seed} {i}")
        mask, kind, dims = text.condition(3), text.draw.choice(KINDS), text.draw.choice(DIMENSIONS)
        lengths = text.draw.choice((LENGTHS, [text.draw.randint(0, 500) for _ in range(6)]))
        yield instance(f"mask_{seed}_{i}-{kind}-{dims[0]}x{dims[1]}", dims, mask=f"({mask}) and col <= row + {text.draw.randint(0, 99)}",
                       num_targets=7, **TYPES[kind]) | {"lengths": lengths}
