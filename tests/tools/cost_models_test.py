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
# What draws the cells of each file candidate_times_NAME.csv.gz in bench/results: a script of bench and its arguments.
TIMES = {"h100_2026-11-26": ["random_cells.py", "--seed", "1", "--count", "54"],
         "extremes_2026-11-26": ["random_cells.py", "--seed", "2", "--count", "36", "--extremes"],
         "short_2026-11-27": ["random_cells.py", "--seed", "2", "--count", "4", "--short", "--exhaustive"],
         "short_narrow_2026-11-27": ["random_cells.py", "--seed", "4", "--count", "6", "--short", "--exhaustive", "--only", "^short-[235]$"],
         "short_wide_2026-11-27": ["random_cells.py", "--seed", "4", "--count", "6", "--short", "--exhaustive", "--only", "^short-[014]$"],
         "narrow_2026-11-27": ["random_cells.py", "--seed", "11", "--count", "200", "--exhaustive", "--only", "^random-(10|24|36|119)$"],
         "models_2026-12-01": ["traffic.py", "--cells", ROOT / "bench" / "models.json", "--seed", "0"],
         "models_redrawn_2026-12-01": ["traffic.py", "--cells", ROOT / "bench" / "models.json", "--redraw", "--seed", "20261201",
                                       "--only", "^(?!mlperf-1024)"],
         "traffic_redrawn_2026-12-01": ["traffic.py", "--redraw", "--seed", "20261202"]}
# Digests of these cells, as they were drawn when they were timed.
DIGESTS = {"h100_2026-11-26": "5905dd69d893604e", "extremes_2026-11-26": "c7f29a87168fa2b5",
           "short_2026-11-27": "63e3c674a4abd025",
           "short_narrow_2026-11-27": "7352b2a3602277a5",
           "short_wide_2026-11-27": "3c0ea12f2ce213af",
           "narrow_2026-11-27": "80d12af3dfea61b8",
           "models_2026-12-01": "e4feae6cc01da9a3",
           "models_redrawn_2026-12-01": "697a7f1013efe4d7",
           "traffic_redrawn_2026-12-01": "1c33fe7a248a9df8"}
JUDGED = re.compile(r"now +fitted on +(\d+) cells: ([\d.]+) in geometric mean, +(\d+) % within 10 %, ([\d.]+) at most")


class CostModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.files = []
        for name, arguments in TIMES.items():
            cells, times = (pathlib.Path(scratch.name) / f"{kind}_{name}.json" for kind in ("cells", "times"))
            script, *options = arguments
            with cells.open("w") as file:
                subprocess.run([sys.executable, ROOT / "bench" / script, *options], stdout=file, stderr=subprocess.DEVNULL, check=True)
            packed = ROOT / "bench" / "results" / f"candidate_times_{name}.csv.gz"
            with times.open("w") as file:
                subprocess.run([sys.executable, ROOT / "bench" / "candidate_times.py", "unpack", packed], stdout=file, check=True)
            cls.files += [cells, times]

    def judge(self, direction):
        done = subprocess.run([PROGRAM, direction, "--cells", *self.files], capture_output=True, text=True, check=True)
        cells, mean, within, most = JUDGED.match(done.stdout).groups()
        return int(cells), float(mean), int(within), float(most)

    def test_cells_are_those_that_were_timed(self):
        for name, cells, times in zip(TIMES, self.files[0::2], self.files[1::2]):
            with self.subTest(name=name):
                ops = json.loads(cells.read_text())["ops"]
                keys = json.loads(times.read_text())["result"]["keys"]
                drawn = [(op["name"], direction, op["max_seq_len"]) for op in ops for direction in ("forward", "backward")]
                self.assertEqual([(key["name"], key["direction"], key["max_seq_len"]) for key in keys], drawn)
                self.assertTrue(all(key["us"] for key in keys))
                # A file of times does not say dimensions, masks and lengths.
                digest = hashlib.sha256(json.dumps(ops, sort_keys=True).encode()).hexdigest()
                self.assertEqual(digest[:16], DIGESTS[name])

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
                self.assertEqual(judged[0], 153)
                self.assertLess(judged[1], mean)
                self.assertGreaterEqual(judged[2], within)
                self.assertLess(judged[3], 2.2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
