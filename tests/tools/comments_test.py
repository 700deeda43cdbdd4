"""Comments of the sources name files of this repository that are there, and headings that their page has.

In a path `<name>` stands for any name, as does a part in capitals; `*` and `{a,b}` mean what they mean to a shell. A
heading follows its page in quotes: docs/ops.md, "Numerics"; or comes before it, as ``silu`` of docs/ops-rows.md.
"""
import ast
import functools
import io
import pathlib
import re
import subprocess
import tokenize
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
C_LIKE = (".c", ".cpp", ".cuh", ".h", ".hpp")
HASHED = (".cmake", ".sh", "CMakeLists.txt", "Makefile")
HEADING = re.compile(r'(docs/[\w-]+\.md), "([^"]+)"')
HEADING_BEFORE = re.compile(r"``(\w+)`` (?:of|in) (docs/[\w-]+\.md)")


def tracked():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name]


def comments_of_c(text):
    # A literal comes first: what looks like a comment in it is none.
    found = re.findall(r'"(?:\\.|[^"\\\n])*"|((?:^[ \t]*//[^\n]*\n)+|//[^\n]*|/\*.*?\*/)', text, flags=re.M | re.S)
    return [re.sub(r"\s*\n\s*(?://+|\*)?\s*", " ", comment) for comment in found if comment]


def comments_of_python(text):
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented)]
    last = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        if last == token.start[0] - 1:
            found[-1] += " " + token.string.lstrip("# ")
        else:
            found.append(token.string)
        last = token.start[0]
    return [" ".join(comment.split()) for comment in found if comment]


def comments_of_script(text):
    blocks = re.findall(r"(?:^[ \t]*#[^\n]*\n)+", text + "\n", flags=re.M)
    return [" ".join(line.strip("# \t") for line in block.splitlines()) for block in blocks]


def comments(name, text):
    if name.endswith(C_LIKE):
        return comments_of_c(text)
    return comments_of_python(text) if name.endswith(".py") else comments_of_script(text)


@functools.cache
def path_pattern():
    folders = sorted({name.split("/")[0] for name in tracked() if "/" in name and not name.startswith(".")})
    return re.compile(rf"(?<![\w./<>}}*$-])(?:{'|'.join(folders)})/[\w./*<>{{}},-]+")


@functools.cache
def exists(path):
    path = re.sub(r"<[^>]*>", "*", path.rstrip(".,"))
    path = "/".join("*" if re.fullmatch(r"[A-Z_]+", part) else part for part in path.split("/"))
    if braces := re.search(r"\{([^}]*)\}", path):
        return all(exists(path[: braces.start()] + part + path[braces.end() :]) for part in braces[1].split(","))
    return any(True for _ in ROOT.glob(path))


@functools.cache
def headings(page):
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    return {heading.replace("`", "") for heading in re.findall(r"^#+ +(.*)$", text, flags=re.M)}


def mistakes(name, text):
    found = []
    for comment in comments(name, text):
        missing = [path for path in path_pattern().findall(comment) if not exists(path)]
        found += [f"{path}: no such file" for path in missing]
        named = HEADING.findall(comment) + [(page, heading) for heading, page in HEADING_BEFORE.findall(comment)]
        found += [f'{page}, "{heading}": no such heading' for page, heading in named
                  if (ROOT / page).exists() and heading not in headings(page)]
    return found


class Comments(unittest.TestCase):
    def test_what_they_name_is_there(self):
        files = [name for name in tracked() if name.endswith((*C_LIKE, *HASHED, ".py"))]
        if not files:
            self.skipTest("no checkout of git")
        self.assertGreater(len(files), 1000)
        for name in filter(lambda name: (ROOT / name).is_file(), files):
            with self.subTest(file=name):
                self.assertEqual(mistakes(name, (ROOT / name).read_text(encoding="utf-8")), [])

    def test_what_is_not_there_is_named(self):
        if not tracked():
            self.skipTest("no checkout of git")
        here = "// See docs/ops.md, \"Numerics\", and templates/<family>/<name>/kernel.{cpp,cuh}; tests/fuzz/corpus/TARGET.\n"
        self.assertEqual(mistakes("a.h", here + 'const char* none = "// docs/none.md";\n'), [])
        self.assertEqual(mistakes("a.h", "int a;  // docs/none.md\n// of docs/ops.md,\n//   \"None\"\n/* bench/{run_gpu,none}.sh */"),
                         ["docs/none.md: no such file", 'docs/ops.md, "None": no such heading', "bench/{run_gpu,none}.sh: no such file"])
        self.assertEqual(mistakes("a.py", '"""``none`` of\ndocs/ops.md"""\na = "docs/none.md"  # docs/none.md\n'),
                         ['docs/ops.md, "none": no such heading', "docs/none.md: no such file"])
        self.assertEqual(mistakes("a.sh", "# docs/ops.md,\n# \"None\"\necho docs/none.md\n"), ['docs/ops.md, "None": no such heading'])


if __name__ == "__main__":
    unittest.main()
