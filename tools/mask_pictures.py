#!/usr/bin/env python3
"""Draws the pictures of docs/masks.md: the pairs that the host backend lets attend, where fields and text say the same.

    tools/mask_pictures.py            write docs/images/mask_*.svg; needs the Python package and PyTorch
    tools/mask_pictures.py --check    exit 1 when one is not what would be written
"""
import argparse
import pathlib
import sys

import hstujit.torch
import torch

ROWS, TARGETS = 24, 4
CELL, EDGE = 6, 1
SEEN, UNSEEN, LINE = "#2f6fab", "#eef1f4", "#d98032"

# By the picture's name: the fields of the mask, and the text that says the same, as far as there is one.
PICTURES = {
    "causal": ({}, "col <= row"),
    "window": ({"max_attn_len": 6}, "0 <= row - col <= 6"),
    "targets": ({"targets": True}, "where(row < n - targets, col <= row, col < n - targets or col == row)"),
    "target_groups": ({"targets": True, "target_group_size": 2}, None),
    "context": ({"contextual_seq_len": 4}, None),
    "window_context": ({"max_attn_len": 6, "contextual_seq_len": 4, "targets": True}, None),
    "full_tail": ({"max_attn_len": 6, "min_full_attn_seq_len": 5}, None),
    "local": ({"sla_k1": 6, "sla_k2": 4}, "col <= row and (col < 4 or row - col < 6)"),
    "full": ({"causal": False, "full_mask": True}, "true"),
    "sinks": (None, "col <= row and (row - col < 6 or col < 2)"),
    "blocks": (None, "row // 6 == col // 6"),
    "dilated": (None, "0 <= row - col < 16 and (row - col) % 4 == 0"),
}


class Mistake(Exception):
    """Two ways to say a mask that do not agree; one sentence."""


def seen(says):
    """Which column each row attends to: its weights, which are the rows of the result where values are unit vectors."""
    with_targets = says.pop("targets", "targets" in says.get("mask", ""))
    q = torch.ones(ROWS, 1, 8)
    out = hstujit.torch.attention(
        q, q, torch.eye(ROWS).unsqueeze(1), torch.tensor([0, ROWS]), ROWS, score="identity",
        num_targets=torch.tensor([TARGETS]) if with_targets else None, **says)
    return out[:, 0] > 0


def pairs_of(name, fields, text):
    ways = [seen(dict(says)) for says in (fields, {"mask": text} if text else None) if says is not None]
    if len(ways) == 2 and not torch.equal(*ways):
        raise Mistake(f"the picture {name}: fields and text do not say the same")
    return ways[0], bool(fields and fields.get("targets"))


def draw(name, fields, text):
    pairs, has_targets = pairs_of(name, fields, text)
    size = ROWS * CELL + 2 * EDGE
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{size}" height="{size}" role="img">',
             f"<title>{name}: rows downwards, the columns that they see to the right</title>",
             f'<rect width="{size}" height="{size}" fill="{UNSEEN}"/>']
    for row, columns in enumerate(pairs.tolist()):
        col = 0
        while col < ROWS:  # a rectangle for each run of columns
            end = col
            while end < ROWS and columns[end]:
                end += 1
            if end > col:
                parts.append(f'<rect x="{EDGE + col * CELL}" y="{EDGE + row * CELL}" width="{(end - col) * CELL}" '
                             f'height="{CELL}" fill="{SEEN}"/>')
            col = end + 1
    if has_targets:
        at = EDGE + (ROWS - TARGETS) * CELL
        parts += [f'<line x1="0" x2="{size}" y1="{at}" y2="{at}" stroke="{LINE}"/>',
                  f'<line x1="{at}" x2="{at}" y1="0" y2="{size}" stroke="{LINE}"/>']
    return "\n".join([*parts, "</svg>"]) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a picture is out of step")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1] / "docs" / "images")
    options = parser.parse_args(arguments)
    code = 0
    for name, (fields, text) in PICTURES.items():
        path, wanted = options.folder / f"mask_{name}.svg", draw(name, fields, text)
        if not options.check:
            path.write_text(wanted, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != wanted:
            print(f"{path} is not what tools/mask_pictures.py draws", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Mistake as mistake:
        print(f"mask_pictures: {mistake}", file=sys.stderr)
        sys.exit(2)
