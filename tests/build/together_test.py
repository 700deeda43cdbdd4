"""Files that the sanitizers' presets compile together (UNITY in cmake/library.cmake) have no name of their unnamed
namespaces twice: other presets compile each file by itself and do not see it."""
import collections
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The build folder is not among them: other tests write and delete there while this one reads.
FOLDERS = ("compiler", "autotune_cache", "runtime", "operations", "tools")
KINDS = (
    r"(?:class|struct|enum class|enum) (\w+)",
    r"(?:inline |static |constexpr |const )*(?:const(?:expr)? )[\w:<>, *&]*?\b(k[A-Z]\w*)\b",
    r"[\w:<>, *&]+ [*&]?(\w+\([^{;]*)[{;]?",
)


def libraries():
    """The sources of each such library: those below its CMakeLists.txt, without what another one has."""
    found = collections.defaultdict(list)
    folders = {path.parent: path.read_text(encoding="utf-8")
               for folder in FOLDERS for path in ROOT.glob(f"{folder}/**/CMakeLists.txt")}
    sources = [path for folder in FOLDERS[:-1] for path in ROOT.glob(f"{folder}/**/*.cpp")]
    for path in sorted([*sources, *ROOT.glob("tools/hstujit/*.cpp")]):
        owner = next((folder for folder in path.parents if folder in folders), None)
        if owner and re.search(r"hstujit_library\([^)]*\bUNITY\b", folders[owner]):
            found[owner].append(path)
    return found


def own_names(text):
    """Definitions within unnamed namespaces: names of types and constants, functions with their parameters."""
    names = set()
    for block in re.findall(r"^namespace \{\n(.*?)^\}  // namespace$", text, flags=re.M | re.S):
        for line in block.split("\n"):
            if not re.match(r"[A-Za-z]", line) or line.startswith("template"):
                continue
            # A type may have the same other name in several files.
            if line.startswith("using "):
                continue
            name = next((match[1] for kind in KINDS if (match := re.match(kind, line))), None)
            if name:
                names.add(name.rstrip())
    return names


def twice(files):
    """[(name, its files)] of {file: text}."""
    places = collections.defaultdict(list)
    for file, text in files.items():
        for name in own_names(text):
            places[name].append(file)
    return sorted((name, sorted(of)) for name, of in places.items() if len(of) > 1)


class Together(unittest.TestCase):
    def test_no_name_is_defined_twice(self):
        self.assertGreater(sum(map(len, libraries().values())), 200)
        for folder, paths in libraries().items():
            with self.subTest(library=str(folder.relative_to(ROOT))):
                self.assertEqual(twice({path.name: path.read_text(encoding="utf-8") for path in paths}), [])

    def test_what_is_there_twice_is_named(self):
        one = "namespace {\n\nconstexpr int kSize = 3;\nstruct Row {\n  int kept;\n};\nint sum(int a) {\n}\n\n}  // namespace\n"
        other = one.replace("int a", "Row a").replace("Row {", "Place {")
        self.assertEqual(twice({"a": one, "b": other}), [("kSize", ["a", "b"])])
        self.assertEqual([name for name, _ in twice({"a": one, "b": one})], ["Row", "kSize", "sum(int a)"])


if __name__ == "__main__":
    unittest.main()
