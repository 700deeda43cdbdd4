"""Lines of the pages for people have 120 characters at most. Tables and blocks of code are as wide as they must be. And no
tracked file holds both sides of a merge."""
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGEST = 120


def pages():
    folders = (folder for folder in ROOT.iterdir() if folder.is_dir() and folder.name != "build" and not folder.name.startswith("."))
    return sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))])


def long_lines(text):
    """(number, characters) of each line that is too long."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.M | re.S)
    return [(number, len(line)) for number, line in enumerate(text.split("\n"), 1)
            if len(line) > LONGEST and not re.match(r" *\|| {4}(?! *(- |\d+\. ))", line)]


def merge_marks(text):
    """Numbers of the lines with which git begins and ends what it could not merge."""
    return [number for number, line in enumerate(text.split("\n"), 1) if re.match(r"(<{7}|>{7}) ", line)]


class Lines(unittest.TestCase):
    def test_no_line_is_too_long(self):
        self.assertGreater(len(pages()), 25)
        for page in pages():
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(long_lines(page.read_text(encoding="utf-8")), [])

    def test_characters_count_and_not_bytes(self):
        wide = "×" * LONGEST
        self.assertEqual(long_lines(f"{wide}\n{wide}a\n| {wide} |\n    {wide}\n```\n{wide}b\n```\n- {wide}"), [(2, 121), (8, 122)])

    def test_nothing_is_left_of_a_merge(self):
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
        if listed.returncode != 0:
            self.skipTest("no checkout of git")
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
        self.assertGreater(len(files), 500)
        for file in filter(pathlib.Path.is_file, files):
            with self.subTest(file=str(file.relative_to(ROOT))):
                self.assertEqual(merge_marks(file.read_bytes().decode("utf-8", "replace")), [])
        self.assertEqual(merge_marks("a\n" + "<" * 7 + " HEAD\nb\n" + "=" * 7 + "\nc\n" + ">" * 7 + " x"), [2, 6])


if __name__ == "__main__":
    unittest.main()
