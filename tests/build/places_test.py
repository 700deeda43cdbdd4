"""places_test.py CXX ARCHIVES SCRATCH: docs/adding-an-operator.md lists where a mask parameter, a score and an operand
of attention are written. Nothing else of the library names one, and one of each that is added in a copy of those files,
and nowhere else, is read, part of the call, and in effect.

The copy is compiled as one file and linked with the build's archives, whose objects may have the sources that it
replaces, too: the copy comes first. Without archives, as in builds for sanitizers, only
names are looked at."""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ATTENTION = "compiler/spec/operators/hstu_attention"
FOLDERS = ("autotune_cache", "compiler", "include", "operations", "python/native", "runtime", "templates", "tools")
RENDERED = {"include/hstujit/operators.hpp"}  # by `make docs`
CXX, ARCHIVES, SCRATCH = (pathlib.Path(argument) for argument in sys.argv[1:4])

# File, what stands there, and what takes its place.
ADDED = [
    (f"{ATTENTION}/params.h", "  int64_t sla_k2 = 0;",
     "  int64_t sla_k2 = 0;\n  int64_t max_distance = 0;\n  bool gate = false;"),
    (f"{ATTENTION}/params.h", '        field("sla_k2"',
     '        field("max_distance", &P::max_distance, "columns are at most so far from a row", 0, kMaxSeqLen),\n'
     '        field("gate", &P::gate, "launches take gate, a number of each row"),\n'
     '        field("sla_k2"'),
    (f"{ATTENTION}/mask.cpp", "  return valid;",
     "  if (p.max_distance > 0) valid = valid && std::abs(i - j) <= p.max_distance;\n  return valid;"),
    (f"{ATTENTION}/mask_expression.cpp", "    return std::move(ops_).finish(valid);",
     "    const Term distance = number(\"max_distance\");\n"
     "    const Term near = ops_.le(ops_.abs(ops_.sub(row_, column_)), distance);\n"
     "    return std::move(ops_).finish(ops_.both(valid, ops_.either(ops_.eq(distance, zero()), near)));"),
    (f"{ATTENTION}/call.cpp", '"precision causal', '"max_distance precision causal'),
    (f"{ATTENTION}/params.h", 'kHstuScores = "', 'kHstuScores = "relu3 '),
    (f"{ATTENTION}/own_score.cpp", "kNamedScores[] = {", 'kNamedScores[] = {{"relu3", "pow(relu(x), 3.0)"}, '),
    (f"{ATTENTION}/operands/declarations.cpp", "  return operands;",
     '  if (params.gate) add("gate", row_kind(), OperandUse::kScore, DataType::kFp32).doc = "of each row";\n'
     "  return operands;"),
    (f"{ATTENTION}/operands/call.cpp", '.presence("num_targets"', '.presence("gate", "gate").presence("num_targets"'),
]

PROGRAM = f"""
#include <cstdio>

#include "compiler/expression/evaluate.h"
#include "{ATTENTION}/bound_mask.cpp"
#include "{ATTENTION}/call.cpp"
#include "{ATTENTION}/mask.cpp"
#include "{ATTENTION}/mask_expression.cpp"
#include "{ATTENTION}/operands/call.cpp"
#include "{ATTENTION}/operands/declarations.cpp"
#include "{ATTENTION}/own_mask.cpp"
#include "{ATTENTION}/own_score.cpp"
#include "{ATTENTION}/params.cpp"

using namespace hstujit;

int fail(const char* what) {{
  std::puts(what);
  return 1;
}}

int main() {{
  Mistakes mistakes;
  const Json json = {{{{"op", "hstu_attention"}}, {{"heads", 2}}, {{"attn_dim", 64}}, {{"hidden_dim", 64}},
                     {{"max_distance", 3}}, {{"gate", true}}, {{"score", "pow(relu(x), 3.0)"}}}};
  const auto params = read_attention_params<HstuAttentionParams>(json, "", mistakes);
  if (!params || params->max_distance != 3 || !params->gate) return fail("a config's fields are not read");
  if (params->score != "relu3") return fail("a score's text is not its name");
  int64_t pairs = 0;
  for (int64_t n = 0; n <= 8; ++n) {{
    const Expression mask = bound_mask(*params, n, 0);
    ExpressionEvaluator valid(mask);
    for (int64_t row = 0; row < n; ++row) {{
      for (int64_t column = 0; column < n; ++column) {{
        const int64_t at[] = {{row, column}};
        if ((valid.at(at) != 0) != hstu_attention_valid(*params, row, column, n, 0)) return fail("masks differ");
        pairs += n == 8 ? valid.at(at) : 0;
      }}
    }}
  }}
  if (pairs != 1 + 2 + 3 + 5 * 4) return fail("the mask has other pairs");
  const std::vector<Operand> operands = operands_of(*params);
  if (operands.size() != 1 || operands[0].name != "gate") return fail("the operand is not listed");
  CallDeclaration call;
  call_hstu_attention(call);
  if (!call.parameters().contains("gate") || !call.parameters().contains("max_distance"))
    return fail("a call does not say them");
  std::puts("ok");
}}
"""


def section(title):
    page = (ROOT / "docs/adding-an-operator.md").read_text(encoding="utf-8")
    return re.search(rf"^### {title}\n(.*?)^##", page, re.S | re.M).group(1)


def paths(text):
    """Files and folders that a text names in backticks, also those named without the folder that they share."""
    found = set()
    for name in re.findall(r"`([\w./-]+\.(?:h|cpp|cuh|td|py|md)|[\w./-]+/)`", text):
        found |= {path for path in (name, f"{ATTENTION}/{name}", f"compiler/ir/{name}", f"compiler/expression/{name}")
                  if (ROOT / path).exists()}
    return found


def users(name, folders=FOLDERS):
    """Files of the library with that word in their code."""
    word = re.compile(rf"\b{name}\b")
    files = (path for folder in folders for path in sorted((ROOT / folder).rglob("*"))
             if path.suffix in (".h", ".hpp", ".cpp", ".cuh", ".td"))
    return {path.relative_to(ROOT).as_posix() for path in files
            if word.search(re.sub(r"//.*", "", path.read_text(encoding="utf-8")))}


def is_listed(path, listed):
    return path in listed or any(path.startswith(folder) for folder in listed if folder.endswith("/"))


def add_to_copy():
    folder = SCRATCH / ATTENTION
    shutil.rmtree(SCRATCH, ignore_errors=True)
    shutil.copytree(ROOT / ATTENTION, folder)
    for file, old, new in ADDED:
        path = SCRATCH / file
        before, found, after = path.read_text(encoding="utf-8").rpartition(old)
        assert found, f"{file} has no {old}"
        path.write_text(before + new + after, encoding="utf-8")



class Places(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.mask = paths(section("Another mask or score of attention"))
        self.operand = paths(section("Another operand of attention"))

    def test_a_mask_parameter_is_named_where_the_table_says(self):
        expression = (ROOT / ATTENTION / "mask_expression.cpp").read_text(encoding="utf-8")
        names = set(re.findall(r'number\("(\w{6,})"\)', expression))  # numbers of a mask alone
        self.assertIn("max_attn_len", names)
        named = {name: users(name) - RENDERED for name in names - {"column"}}
        others = {name: [path for path in files if not is_listed(path, self.mask)] for name, files in named.items()}
        self.assertEqual({name: files for name, files in others.items() if files}, {})
        stale = {path for path in self.mask if path.startswith(f"{ATTENTION}/") and "mask" not in path} - set().union(
            *named.values())
        self.assertEqual({path for path in stale if path in section("Another mask or score of attention")}, set())

    def test_a_score_is_named_where_the_page_says(self):
        parameters = (ROOT / ATTENTION / "params.h").read_text(encoding="utf-8")
        names = re.search(r'kHstuScores = "([\w ]+)"', parameters).group(1).split()
        own = [name for name in names if name in ("relu2", "identity")]  # others name activations of other operators
        self.assertTrue(own)
        for name in own:
            files = users(f'"[^"\\n]*\\b{name}\\b[^"\\n]*"', ("compiler/spec", "compiler/ir", "templates", "runtime"))
            self.assertEqual([path for path in files if not is_listed(path, self.mask)], [], name)

    def test_an_operand_is_named_where_the_table_says(self):
        for name in ("rab", "attn_scale"):
            files = users(name) - RENDERED
            self.assertEqual([path for path in files if not is_listed(path, self.operand)], [], name)

    def test_what_is_added_there_alone_works(self):
        archives = [ARCHIVES / f"libhstujit_{name}.a" for name in ("spec", "expression", "support", "fmt")]
        missing = [archive for archive in archives if not archive.exists()]
        if missing:
            self.skipTest(f"{missing[0]} is not built")
        for file, _, _ in ADDED:
            self.assertTrue(is_listed(file, self.mask | self.operand), f"the page does not name {file}")
        add_to_copy()
        (SCRATCH / "main.cpp").write_text(PROGRAM, encoding="utf-8")
        command = [CXX, "-std=c++20", "-O0", f"-I{SCRATCH}", f"-I{ROOT}", f"-I{ROOT}/include", SCRATCH / "main.cpp",
                   "-o", SCRATCH / "main", *archives, "-Wl,--allow-multiple-definition,--gc-sections", "-ldl", "-lpthread"]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(built.returncode, 0, built.stderr[:4000])
        ran = subprocess.run([SCRATCH / "main"], capture_output=True, text=True, check=False)
        self.assertEqual(ran.stdout, "ok\n", ran.stdout + ran.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
