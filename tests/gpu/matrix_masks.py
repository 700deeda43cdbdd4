"""The matrix's instances of masks that users write: those of docs/expressions.md, and conditions drawn at random."""

import matrix_texts

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


OPERANDS = "doc: row(int32), ts: row(int64), own: sequence(int32), most: scalar(int64)"
READING = {  # conditions of OPERANDS, all of them, which are drawn from 0 to 1023
    "documents": "col <= row and (doc[row] // 300 == doc[col] // 300 or ts[row] - ts[col] < own - most)",
    "times": "row - col < 300 and (ts[row] - ts[col] < own + most // 2 or doc[col] % 5 == 0 and col == row)",
    "both_ways": "where(col < 100, ts[col] >= ts[row], abs(row - col) < 90) and not (doc[row] == own and most > 3)",
}


class Text(matrix_texts.Text):
    """Conditions of a few operators, whose numbers stay small."""

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
            return self.comparison(self.number, depth)
        one = lambda: self.condition(depth - 1)
        return self.draw.choice((
            lambda: f"({one()}) and ({one()})",
            lambda: f"({one()}) or ({one()})",
            lambda: f"not ({one()})",
            lambda: f"where({one()}, {one()}, {one()})",
        ))()

    def expression(self):
        return self.condition(3)


def mask_instances(seed=1, count=120):
    def say(text, mask):
        return {"mask": f"({mask}) and col <= row + {text.draw.randint(0, 99)}"}

    yield from matrix_texts.written_instances("mask", MASKS)
    yield from matrix_texts.written_instances("mask", {f"of_{name}": mask for name, mask in READING.items()}, operands=OPERANDS)
    yield from matrix_texts.drawn_instances("mask", seed, (Text(f"{seed} {i}") for i in range(count)), say)
