"""The constants of attention's cost models, judged by bench/fit_costs.cpp with the times that are in bench/results.

Its argument is that program.
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What bench/random_cells.py is told for the cells of each file.
TIMES = {"candidate_times_h100_2026-11-26.json": ["--seed", "1", "--count", "54"],
         "candidate_times_extremes_2026-11-26.json": ["--seed", "2", "--count", "36", "--extremes"],
         "candidate_times_short_2026-11-27.json": ["--seed", "2", "--count", "4", "--short", "--exhaustive"],
         "candidate_times_short_narrow_2026-11-27.json": ["--seed", "4", "--count", "6", "--short", "--exhaustive", "--only", "^short-[235]$"],
         "candidate_times_short_wide_2026-11-27.json": ["--seed", "4", "--count", "6", "--short", "--exhaustive", "--only", "^short-[014]$"],
         "candidate_times_narrow_2026-11-27.json": ["--seed", "11", "--count", "200", "--exhaustive", "--only", "^random-(10|24|36|119)$"]}
# Of these cells, as they were drawn when they were timed.
DIGESTS = {"candidate_times_h100_2026-11-26.json": "5905dd69d893604e", "candidate_times_extremes_2026-11-26.json": "c7f29a87168fa2b5",
           "candidate_times_short_2026-11-27.json": "63e3c674a4abd025",
           "candidate_times_short_narrow_2026-11-27.json": "7352b2a3602277a5",
           "candidate_times_short_wide_2026-11-27.json": "3c0ea12f2ce213af",
           "candidate_times_narrow_2026-11-27.json": "80d12af3dfea61b8"}
JUDGED = re.compile(r"now +fitted on +(\d+) cells: ([\d.]+) in geometric mean, +(\d+) % within 10 %, ([\d.]+) at most")


class CostModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.files = []
        for name, arguments in TIMES.items():
            cells = pathlib.Path(scratch.name) / name
            with cells.open("w") as file:
                subprocess.run([sys.executable, ROOT / "bench" / "random_cells.py", *arguments], stdout=file, check=True)
            cls.files += [cells, ROOT / "bench" / "results" / name]

    def judge(self, direction):
        done = subprocess.run([PROGRAM, direction, "--cells", *self.files], capture_output=True, text=True, check=True)
        cells, mean, within, most = JUDGED.match(done.stdout).groups()
        return int(cells), float(mean), int(within), float(most)

    def test_cells_are_those_that_were_timed(self):
        for cells, times in zip(self.files[0::2], self.files[1::2]):
            with self.subTest(times=times.name):
                ops = json.loads(cells.read_text())["ops"]
                keys = json.loads(times.read_text())["result"]["keys"]
                drawn = [(op["name"], direction, op["max_seq_len"]) for op in ops for direction in ("forward", "backward")]
                self.assertEqual([(key["name"], key["direction"], key["max_seq_len"]) for key in keys], drawn)
                self.assertTrue(all(key["us"] for key in keys))
                # A file of times does not say dimensions, masks and lengths.
                digest = hashlib.sha256(json.dumps(ops, sort_keys=True).encode()).hexdigest()
                self.assertEqual(digest[:16], DIGESTS[times.name])

    def test_mistakes_are_refused(self):
        for arguments, said in (
            (["forward"], "--cells is required"),
            (["sideways", "--cells", *self.files], "sideways"),
            (["forward", "--cells", self.files[0]], "--cells: 2 required"),
            (["forward", "--cells", *self.files, "--steps", "many"], "many"),
            (["forward", "--cells", *self.files, "--keep", "no_such"], "no_such is no constant"),
        ):
            with self.subTest(arguments=arguments):
                done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
                self.assertGreater(done.returncode, 0)
                self.assertIn(said, done.stderr)

    def test_the_untuned_choice_is_seldom_far_from_the_fastest_candidate(self):
        for direction, mean, within in (("forward", 1.06, 85), ("backward", 1.075, 75)):
            with self.subTest(direction=direction):
                judged = self.judge(direction)
                self.assertEqual(judged[0], 104)
                self.assertLess(judged[1], mean)
                self.assertGreaterEqual(judged[2], within)
                self.assertLess(judged[3], 2.2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
