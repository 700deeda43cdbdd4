"""Every link of the pages for people leads to a file, and to a heading of it where the link names one; every recorded result
that they name is there, but for the journal's; and so are the tests that they run. No other result is kept."""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("bench/*.md"), *ROOT.glob("templates/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
JOURNAL = ROOT / "docs" / "journal.md"  # names files as they were at an entry's date
RESULT = re.compile(r"[\w*]+_\d{4}-\d\d-\d\d\.(?:json|csv\.gz)")


def without_code(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"^    .*$", "", text, flags=re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """Anchors of headings, as they are made from their text: lower case, without punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page, text):
    dead = []
    for target in LINK.findall(without_code(text)):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if name and not file.exists():
            dead.append(f"{target}: no such file")
        elif anchor and anchor not in anchors(text if not name else file.read_text(encoding="utf-8")):
            dead.append(f"{target}: no such heading")
    return dead


def lost_results(text):
    """Results, whose names may be patterns, that no file has."""
    return [name for name in RESULT.findall(text) if not any((ROOT / "bench" / "results").glob(name))]


def presetless(text):
    """Commands that run ctest where it finds no test, which it says and calls done: in the source directory."""
    return [command for command in re.findall(r"\bctest -[^`\n]*", text) if not command.startswith("ctest --preset ")]


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        self.assertGreater(len(PAGES), 15)
        for page in PAGES:
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(dead_links(page, page.read_text(encoding="utf-8")), [])

    def test_every_result_that_a_page_names_is_there(self):
        for page in set(PAGES) - {JOURNAL}:
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(lost_results(page.read_text(encoding="utf-8")), [])
        self.assertEqual(lost_results("`bench_2026-11-27.json`, `lost_2026-11-21.json`, `b*_2026-11-27.json`"), ["lost_2026-11-21.json"])

    def test_a_result_that_is_kept_is_of_a_page_or_of_a_test(self):
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "bench/results"], capture_output=True, text=True)
        kept = {pathlib.Path(name).name for name in listed.stdout.split()}
        if not kept:
            self.skipTest("no checkout of git")
        readers = [*(set(PAGES) - {JOURNAL}), ROOT / "tests" / "tools" / "cost_models_test.py"]
        named = "\n".join(reader.read_text(encoding="utf-8") for reader in readers)
        # The test of cost models names files of candidate times by what they differ in.
        self.assertEqual([name for name in sorted(kept) if name.partition(".")[0].removeprefix("candidate_times_") not in named], [])

    def test_every_ctest_that_a_page_shows_names_the_preset(self):
        for page in PAGES:
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(presetless(page.read_text(encoding="utf-8")), [])
        self.assertEqual(presetless("`ctest -R a`\n    ctest -L b # c\nctest, `ctest` and `ctest --preset release -R c`\n"),
                         ["ctest -R a", "ctest -L b # c"])

    def test_every_page_of_docs_is_in_its_index(self):
        index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
        pages = {page.name for page in ROOT.glob("docs/*.md")} - {"README.md"}
        self.assertEqual(pages - set(LINK.findall(index)), set())

    def test_every_page_of_docs_is_on_the_site(self):
        nav = (ROOT / "tools" / "site" / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
        pages = {page.name for page in ROOT.glob("docs/*.md")} - {"README.md"}
        self.assertEqual(pages - set(re.findall(r"[\w-]+\.md", nav)), set())

    def test_dead_ones_are_named(self):
        text = "# A b, `c`\n[x](#a-b-c) [y](#d) `[z](none)` [u](none.md) [v](README.md)\n\n    [w](none)\n"
        self.assertEqual(dead_links(ROOT / "page.md", text), ["#d: no such heading", "none.md: no such file"])


if __name__ == "__main__":
    sys.exit(unittest.main())
