"""The matrix's instances of scores that users write, with and without operands: some by name, and formulas drawn at random."""

import matrix_texts

SCORES = {
    "leaky_slope": "leaky_relu(x, 0.2) - 0.01 * (row - col)",
    "slopes": "silu(x - (row - col) * pow(2.0, -8.0 * (head + 1) / heads))",
    "power": "silu(x) * pow(1.0 + abs(row - col), -0.5)",
    "decay": "silu(x) * exp(-0.01 * abs(row - col))",
    "near": "where(row - col < 64, gelu(x), hardswish(x))",
    "steps": "silu(x + 0.25 * int(0.25 * min(row - col, 63) + 0.125))",
    "softcap": "30.0 * tanh(x / 30.0)",
    "bounded": "clamp(x, -1, 1) / n",
    "targets": "where(row < n - targets, silu(x), sigmoid(x))",
    "not_finite": "silu(x) / (n - row) + log(row - col + 1.5)",
}
OPERANDS = "ts: row(int64), a: row(grad), age: table(37, grad), w: table(50, heads, grad), slope: head(grad), gain: scalar(grad), own: sequence(grad), rel: pair(grad)"
AGE = "int(log2(1.5 + abs(ts[row + 1] - ts[col])) * 2.3)"
OWN_OPERANDS = {  # what a score that users write reads, and the score
    "position_time": ("ts: row(int64), pos_w: table(2047, grad), ts_w: table(129, grad)",
                      "silu(x + pos_w[col - row + 1023] + ts_w[int(log(1.0 + abs(ts[row + 1] - ts[col])) / 0.301)])"),
    "by_head": ("far: table(600, heads, bf16, grad), slope: head(grad)", "silu(x - 0.01 * slope * (row - col)) + 0.1 * far[row - col]"),
    "head_slopes": ("slope: head(grad), gain: scalar(grad)", "silu(x - 0.01 * slope * (row - col) + gain)"),
    "rows": ("gate: row(heads, grad), shift: row(bf16, grad), gain: scalar(grad)", "silu(x + shift[row] - shift[col]) * gate[col] * gain"),
    "sequences": ("own: sequence(grad), days: sequence(int32), low: sequence(bf16, grad)", "silu(x + own * 0.02 * (row - col)) + 0.001 * days * low"),
    "pairs": ("near: pair(bf16, heads, grad), each: pair(grad), low: pair(fp16, grad)", "silu(x + near[row, col]) * each[row, col] + low[row, col] * tanh(x)"),
    "day": ("ts: row(int32), w: table(7, fp16, grad)", "silu(x) + w[(ts[row] - ts[col]) // 24 % 7]"),
    "constants": ("ts: row(int64), w: table(40), c: table(9, int32)", "silu(x * w[c[row % 9]]) + 0.001 * (ts[row] - ts[col])"),
}
SOFTMAX_SCORES = {  # what heads with softmax normalise, with what it reads
    "cap": ("", "8.0 * tanh(x / 8.0)"),
    "alibi": ("", "x - (row - col) * pow(2.0, -8.0 * (head + 1) / heads)"),
    "slopes": ("slope: head(grad), gain: scalar(grad)", "gain * x - 0.01 * slope * (row - col)"),
    "positions": ("pos_w: table(2047, heads, grad)", "x + pos_w[col - row + 1023]"),
    "rows": ("gate: row(heads, grad), shift: row(bf16, grad), ts: row(int64)", "x * gate[col] + shift[row] - shift[col] - 0.001 * abs(ts[row] - ts[col])"),
    "sequences": ("own: sequence(grad), low: sequence(bf16, grad)", "x * own + 0.02 * low * (row - col)"),
    "pairs": ("near: pair(bf16, heads, grad), each: pair(grad)", "x * each[row, col] + near[row, col]"),
}
SMOOTH = (
    "silu({})", "sigmoid({})", "tanh({})", "gelu({})", "sin({})", "cos({})", "exp(-abs({}))", "log(1.25 + abs({}))",
    "log2(2.5 + abs({}))", "sqrt(0.5 + abs({}))", "pow(0.75 + abs({}), 1.5)", "pow(tanh({}), 3)",
    "0.5 * pow(2.0, tanh({}))",
)
BENT = ("relu({})", "leaky_relu({})", "leaky_relu({}, 0.25)", "hardswish({})", "clamp({}, -1, 2)", "abs({})")


class Text(matrix_texts.Text):
    """Formulas whose numbers stay moderate, and whose integer parts are those of exact numbers."""

    def __init__(self, seed, reads_operands=False):
        super().__init__(seed)
        self.reads_operands = reads_operands

    def integer(self, depth):
        one = lambda: self.integer(depth - 1)
        simple = [
            lambda: self.draw.choice(("row", "col", "row", "col", "n", "targets", "head")),
            lambda: str(self.draw.randint(0, 300)),
        ]
        nested = [
            lambda: f"({one()} {self.draw.choice('+-')} {one()})",
            lambda: f"({one()} {self.draw.choice(('//', '%'))} {self.draw.choice((2, 3, 7, 16, 64))})",
            lambda: f"int(0.25 * {one()} + 0.125)",
            lambda: f"abs({self.draw.choice(('min', 'max'))}({one()}, {one()}))",
        ]
        return self.draw.choice(simple if depth <= 0 or self.draw.random() < 0.5 else nested)()

    def condition(self, depth):
        if depth <= 0 or self.draw.random() < 0.6:
            return self.comparison(self.integer, depth)
        one = lambda: self.condition(depth - 1)
        return self.draw.choice((f"({one()}) and not ({one()})", f"({one()}) or ({one()})"))

    def real(self, depth):
        one = lambda: self.real(depth - 1)
        if self.reads_operands and self.draw.random() < 0.15:
            index = self.draw.choice((AGE, self.integer(1)))
            return self.draw.choice(("slope", "gain", "own", "rel[row, col]", "a[row]", "a[col]", f"age[{index}]", f"w[{index}]"))
        if depth <= 0 or self.draw.random() < 0.2:
            return self.draw.choice((
                "x", "x", "x", str(self.draw.randint(1, 15) / 8), f"0.00390625 * {self.integer(depth)}",
                "x / alpha * 0.015625",
            ))
        return self.draw.choice((
            lambda: f"({one()} {self.draw.choice('+-')} {one()})",
            lambda: f"({one()}) * tanh({one()})",
            lambda: f"({one()}) / (1.5 + abs({one()}))",
            lambda: self.draw.choice(SMOOTH).format(one()),
            lambda: self.draw.choice(SMOOTH).format(one()),
            lambda: f"where({self.condition(depth - 1)}, {one()}, -({one()}))",
            lambda: f"{self.draw.choice(('min', 'max'))}({one()}, {one()})",
            lambda: self.draw.choice(BENT).format(one()),
        ))()

    def expression(self):
        if not self.reads_operands:
            return self.real(4)
        return f"{self.real(3)} + tanh(0.25 * a[row] * a[col] + age[{AGE}] + w[row - col] * slope + own - rel[row, col]) * gain"


def score_instances(seed=1, count=120):
    others = ({}, {}, {"rab_heads": 1}, {"attn_scale": "rows"}, {"max_attn_len": 50}, {"causal": False})

    def say(text, score):
        read = {"operands": OPERANDS} if text.reads_operands else {}
        fields = {"score": score, **read, **text.draw.choice(others)}
        if text.draw.random() < 0.3:
            fields |= {"num_softmax_heads": text.draw.choice((1, 2)), "softmax_score": score}
        return fields

    yield from matrix_texts.written_instances("score", SCORES)
    for name, (operands, score) in OWN_OPERANDS.items():
        yield from matrix_texts.written_instances("score", {f"of_{name}": score}, operands=operands)
    for name, (operands, score) in SOFTMAX_SCORES.items():
        for heads in (1, 2):
            read = {"operands": operands} if operands else {}
            yield from matrix_texts.written_instances("softmax_score", {f"{name}_{heads}": score}, num_softmax_heads=heads, **read)
        if operands:  # read beside softmax, too
            yield from matrix_texts.written_instances("score", {f"beside_{name}": f"silu({score})"}, num_softmax_heads=1, operands=operands)
    texts = (Text(f"score {seed} {i}", reads_operands=i % 2 == 1) for i in range(count))
    yield from matrix_texts.drawn_instances("score", seed, texts, say)
