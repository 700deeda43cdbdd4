#!/usr/bin/env python3
"""Cells of bench/traffic.json and models.json: what is drawn of them, and what is recorded."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
import record_traffic
import traffic


class Drawing(unittest.TestCase):
    def test_lengths_are_within_their_law(self):
        for file, count in (("traffic.json", 16), ("models.json", 14)):
            cells = traffic.read_traffic(ROOT / "bench" / file)["cells"]
            self.assertGreaterEqual(len(cells), count)
            self.check_lengths(cells)

    def check_lengths(self, cells):
        for cell in cells:
            law = cell["lengths"]
            lengths = traffic.lengths_of(law, 3)
            self.assertEqual(len(lengths), law["sequences"], cell["name"])
            self.assertGreaterEqual(min(lengths), law["min"], cell["name"])
            self.assertLessEqual(max(lengths), traffic.longest_of(law), cell["name"])
            self.assertGreaterEqual(law["min"], cell.get("contextual_seq_len", 0), "contextual rows are a sequence's own")

    def test_half_of_the_cells_are_drawn_anew(self):
        described = traffic.read_traffic()
        first, again, other = ({op["name"].split("_seed_")[0]: op for op in traffic.instances(described, seed)} for seed in (1, 1, 2))
        self.assertEqual(first, again)
        drawn = [name for name in first if first[name]["lengths"] != other[name]["lengths"]]
        self.assertEqual(len(drawn) * 2, len(first))
        for name in drawn:
            self.assertEqual(first[name]["name"], f"{name}_seed_1")

    def test_cells_of_models_are_drawn_anew_where_that_is_asked_for(self):
        described = traffic.read_traffic(ROOT / "bench" / "models.json")
        fixed, redrawn = list(traffic.instances(described, 5)), list(traffic.instances(described, 5, redraw=True))
        self.assertEqual([op["name"] + "_seed_5" for op in fixed], [op["name"] for op in redrawn])
        for op in fixed + redrawn:
            self.assertNotIn("of", op, "it is no field of a config")
        same = [op["name"] for op, other in zip(fixed, redrawn, strict=True) if op["lengths"] == other["lengths"]]
        self.assertEqual(same, ["recsys-4x256-full", "full-1k"], "all of whose sequences are equally long")

    def test_laws_have_their_shape(self):
        law = {"law": "one_over", "tile": 64, "min": 1, "max": 961, "sequences": 500}
        self.assertEqual({length % 64 for length in traffic.lengths_of(law, 1)}, {1})
        power = sorted(traffic.lengths_of({"law": "power", "exponent": 1.2, "min": 1, "max": 512, "sequences": 4096}, 1))
        self.assertLess(power[2048], 10, "half of the sequences are short")
        self.assertGreater(power[-1], 300)
        lonely = {"law": "lonely", "low": 1000, "high": 1000, "min": 1, "max": 9, "sequences": 50}
        self.assertEqual(sum(length > 9 for length in traffic.lengths_of(lonely, 1)), 1)

    def test_a_seed_out_of_range_is_refused(self):
        ran = subprocess.run([sys.executable, ROOT / "bench/traffic.py", "--seed", "-1"], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--seed is -1; allowed: 0 to 2147483647", ran.stderr)


class Recording(unittest.TestCase):
    def recorded(self, peers):
        names = ("fixed", "drawn_seed_7", "other_seed_7")
        bench = {"results": [{"name": name, "direction": "forward", "median_ms": 2.0 + i, "limit_ms": 1.0, "rows": 5}
                             for i, name in enumerate(names)]}
        tuned = {"keys": [{"name": name, "direction": "forward", "heuristic_us": 30, "winner_us": 20} for name in names]}
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for i, content in enumerate((tuned, bench, peers)):
                paths.append(pathlib.Path(folder, str(i)))
                paths[-1].write_text(json.dumps(content), encoding="utf-8")
            return record_traffic.traffic(*paths)

    def test_drawn_cells_are_a_distribution(self):
        times = [{"name": name, "forward": {"hstujit": 1.0, "triton": ratio, "difference": {"hstujit": {"forward": 0.0}, "triton": {"forward": 0.01}}}}
                 for name, ratio in (("fixed", 4.0), ("drawn_seed_7", 2.0), ("other_seed_7", 8.0))]
        result, good = self.recorded({"times": times})
        self.assertTrue(good)
        self.assertEqual(set(result["cells"]), {"fixed"})
        self.assertEqual(result["cells"]["fixed"]["forward"]["speedup"], 4.0)
        self.assertEqual(result["cells"]["fixed"]["forward"]["difference"], 0.01)
        self.assertEqual(result["cells"]["fixed"]["forward"]["of_limit"], 0.5)
        self.assertEqual(result["cells"]["fixed"]["forward"]["slower_untuned"], 1.5)
        self.assertEqual(result["drawn"]["seeds"], [7])
        self.assertEqual(result["drawn"]["forward"]["speedup"],
                         {"cells": 2, "least": 2.0, "median": 5.0, "geometric_mean": 4.0, "most": 8.0})

    def test_a_result_that_differs_has_no_speedup_and_is_a_failure(self):
        reason = {"triton": "its results differ from the float64 reference"}
        result, good = self.recorded({"times": [{"name": "fixed", "forward": {"hstujit": 1.0, "not_compared": reason}}]})
        self.assertFalse(good)
        self.assertEqual(result["cells"]["fixed"]["forward"]["not_compared"], reason)
        self.assertNotIn("speedup", result["cells"]["fixed"]["forward"])

    def test_a_cell_whose_process_ended_has_no_speedup(self):
        result, good = self.recorded({"times": [{"name": "fixed", "ended": "an illegal memory access"}]})
        self.assertTrue(good)
        self.assertNotIn("speedup", result["cells"]["fixed"]["forward"])


if __name__ == "__main__":
    unittest.main()
