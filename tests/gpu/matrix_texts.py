"""Common parts of the instances with masks and scores that users write: types, dimensions, names."""

import itertools
import random

from matrix_attention import LENGTHS, TYPES, instance

DIMENSIONS = ((64, 64), (128, 128), (64, 128), (40, 40))
KINDS = ("bf16", "fp16", "tf32", "bf16_sm80")


class Text:
    """Draws a text; expressions are drawn by the classes of masks and of scores."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def comparison(self, number, depth):
        return f"{number(depth)} {self.draw.choice(('<', '<=', '>', '>=', '==', '!='))} {number(depth)}"


def written_instances(field, texts, **others):
    """Each text in every type and dimension."""
    for name, text in texts.items():
        for kind, dims in itertools.product(KINDS, DIMENSIONS):
            targets = {"num_targets": 20} if "targets" in text else {}
            yield instance(f"{field}_{name}-{kind}-{dims[0]}x{dims[1]}", dims, **{field: text}, **others, **TYPES[kind], **targets)


def drawn_instances(field, seed, texts, say):
    """One for each text. `say` gives the fields that follow from it, after its type, dimensions and lengths are drawn."""
    for i, text in enumerate(texts):
        expression = text.expression()
        kind, dims = text.draw.choice(KINDS), text.draw.choice(DIMENSIONS)
        lengths = text.draw.choice((LENGTHS, [text.draw.randint(0, 500) for _ in range(6)]))
        yield instance(f"{field}_{seed}_{i}-{kind}-{dims[0]}x{dims[1]}", dims, **say(text, expression), num_targets=7,
                       **TYPES[kind]) | {"lengths": lengths}
