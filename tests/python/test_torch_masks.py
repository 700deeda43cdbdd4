"""Masks that users write, through PyTorch: results, gradients, torch.compile and a mistake."""

import unittest

from torch_support import JaggedAttention, torch

if torch:
    import hstujit.errors
    import hstujit.torch

MASK = "col <= row and (row - col < 8 or col % 16 == 3)"


def formula(q, k, v, lengths, longest, alpha):
    parts = []
    for rows in zip(*(tensor.split(lengths) for tensor in (q, k, v)), strict=True):
        row, col = torch.arange(len(rows[0]))[:, None], torch.arange(len(rows[0]))[None]
        valid = (col <= row) & ((row - col < 8) | (col % 16 == 3))
        scores = torch.nn.functional.silu(alpha * torch.einsum("nhd,mhd->hnm", *rows[:2])) / longest
        parts.append(torch.einsum("hnm,mhd->nhd", scores * valid, rows[2]))
    return torch.cat(parts)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Masks(JaggedAttention):
    def attend(self, *qkv, **mask):
        return torch.ops.hstujit.hstu_attention(*qkv, self.offsets, self.longest, 0.25, **mask)

    def test_results_and_gradients_are_those_of_the_formula(self):
        self.check(self.attend(*self.qkv, mask=MASK), lambda *qkv: formula(*qkv, self.lengths, self.longest, 0.25))

    def test_a_text_that_says_what_fields_say_is_theirs(self):
        self.assertTrue(torch.equal(self.attend(*self.qkv, mask="row >= col"), self.attend(*self.qkv)))

    def test_a_compiled_model_has_it(self):
        compiled = torch.compile(lambda *qkv: self.attend(*qkv, mask=MASK))
        found = compiled(*(tensor.detach() for tensor in self.qkv))
        self.assertTrue(torch.equal(found, self.attend(*self.qkv, mask=MASK)))

    def test_documents_of_a_sequence_do_not_see_each_other(self):
        rows, sequences = sum(self.lengths), len(self.lengths)
        doc, most = torch.arange(rows) // 7, torch.arange(sequences) + 5

        def documents(q, k, v):
            parts = []
            split = (tensor.split(self.lengths) for tensor in (q, k, v, doc))
            for one, two, three, own, limit in zip(*split, most, strict=True):
                row, col = torch.arange(len(one))[:, None], torch.arange(len(one))[None]
                valid = (col <= row) & ((own[:, None] == own) | (row - col < limit))
                scores = torch.nn.functional.silu(0.25 * torch.einsum("nhd,mhd->hnm", one, two)) / self.longest
                parts.append(torch.einsum("hnm,mhd->nhd", scores * valid, three))
            return torch.cat(parts)

        text = "col <= row and (doc[row] == doc[col] or row - col < most)"
        operands = {"doc": doc, "most": hstujit.torch.sequence(most)}
        for mask, named in (
            (text, operands),
            (lambda b, h, row, col: (col <= row) & ((doc[row] == doc[col]) | (row - col < most[b])), None),
        ):
            out = hstujit.torch.attention(*self.qkv, self.offsets, self.longest, mask=mask, operands=named, alpha=0.25)
            self.check(out, documents)
        with self.assertRaisesRegex(hstujit.errors.InvalidConfigError, 'there is "\\+"; expected: doc\\[row\\] or'):
            hstujit.torch.attention(
                *self.qkv, self.offsets, self.longest, mask="doc[row + 1] == 0", operands={"doc": doc}
            )

    def test_a_mistake_has_its_column(self):
        with self.assertRaisesRegex(hstujit.errors.InvalidConfigError, 'column 8: there is no "rwo"'):
            self.attend(*self.qkv, mask="col <= rwo")


if __name__ == "__main__":
    unittest.main()
