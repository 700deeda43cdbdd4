#!/usr/bin/env python3
"""Draws docs/images/speedup.svg: how many times as fast as the best public kernel, of the same runs as the tables of docs/results.md.

    tools/speedup_chart.py            write it
    tools/speedup_chart.py --check    exit 1, with the difference, when it is not what would be written
"""
import argparse
import pathlib
import sys

from bench_table import (
    DIRECTIONS, Mistake, ROOT, all_reports, beside, bring_in_step, chosen_report, load, peer_times, rows_of, speedup,
)

COLOURS = {"forward": "#2f6fab", "backward": "#d98032"}
LEFT, TOP, WIDTH = 130, 58, 470  # of the bars' field; the width is that of the largest ratio
BAR, GAP, GROUP = 14, 3, 44
INK, FAINT = "#24292f", "#d0d7de"


def ratios(reports, baselines):
    """{shape: {direction: ratio}} in the order of the reports, and the names of the GPUs."""
    found, gpus = {}, []
    for direction, key in DIRECTIONS:
        chosen = chosen_report(reports, direction)
        if not chosen:
            continue
        gpus.append(chosen[1]["environment"]["gpu"])
        pairs = beside(chosen[1])
        for row in rows_of(chosen[1], direction):
            if "median_ms" not in row:
                continue
            name = row["name"]
            ratio = speedup(peer_times(baselines.get(name, {}).get(key, {}), row["median_ms"], pairs.get((name, direction))))
            if ratio:
                found.setdefault(name, {})[direction] = ratio
    return found, sorted(set(gpus))


def text(x, y, content, anchor="start", colour=INK, size=12):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{content}</text>'


def bar(x, y, width, colour):
    return f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'


def line(x, bottom, colour):
    return f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="{colour}"/>'


def render(reports, baselines):
    shapes, gpus = ratios(reports, baselines)
    if not shapes:
        raise Mistake("no shape has both a time and one of another library")
    largest = max(ratio for of_shape in shapes.values() for ratio in of_shape.values())
    scale = WIDTH / largest
    bottom = TOP + GROUP * len(shapes)
    width, height = LEFT + WIDTH + 60, bottom + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="sans-serif" role="img">',
        "<title>Time of the best public kernel over that of hstu-jit</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text(LEFT, 20, f"Time of the best public kernel / time of hstu-jit ({', '.join(gpus)})", size=14),
    ]
    x = LEFT
    for direction, _ in DIRECTIONS:
        lines += [bar(x, 30, BAR, COLOURS[direction]), text(x + BAR + 5, 42, direction)]
        x += 100
    step = 0.5
    for i in range(1, int(largest / step) + 1):
        position = LEFT + i * step * scale
        lines += [line(position, bottom, INK if i * step == 1 else FAINT), text(position, bottom + 16, f"{i * step:g}×", "middle")]
    for place, (name, of_shape) in enumerate(shapes.items()):
        y = TOP + place * GROUP
        lines.append(text(LEFT - 10, y + BAR + GAP + 4, name, "end"))
        for direction, _ in DIRECTIONS:
            if direction in of_shape:
                ratio = of_shape[direction]
                lines.append(bar(LEFT, y, ratio * scale, COLOURS[direction]))
                lines.append(text(LEFT + ratio * scale + 5, y + BAR - 3, f"{ratio:.2f}×"))
            y += BAR + GAP
    return "\n".join([*lines, "</svg>"]) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the picture is out of step")
    parser.add_argument("--picture", type=pathlib.Path, default=ROOT / "docs" / "images" / "speedup.svg")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--baseline", type=pathlib.Path, default=ROOT / "bench" / "baselines" / "peers_h200_attention.json")
    options = parser.parse_args(arguments)

    present = options.picture.read_text(encoding="utf-8") if options.picture.exists() else ""
    wanted = render(all_reports(options.results), load(options.baseline))
    return bring_in_step(options.picture, present, wanted, options.results, options.check)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Mistake as mistake:
        print(f"speedup_chart: {mistake}", file=sys.stderr)
        sys.exit(2)
