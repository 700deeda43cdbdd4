"""A name at namespace scope has one definition. Two types of one name in one library are undefined behaviour that no
compiler and no linker reports: whichever of two inline functions the linker meets first is that of both."""
import collections
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("compiler", "templates", "autotune_cache", "runtime", "operations", "tools", "bench", "include", "python/native")

TOKEN = re.compile(r'R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/|'
                   r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|[A-Za-z_]\w*|\d(?:[\w.]|'(?=\w))*|::|->|\S", re.S | re.M)
TYPES = ("struct", "class", "union", "enum")


def tokens_of(text):
    return [match[0] for match in TOKEN.finditer(text) if not match[0].lstrip().startswith(("#", "//", "/*"))]


def closed(tokens, begin):
    """Where the bracket at `begin` is closed."""
    depth = 0
    for place in range(begin, len(tokens)):
        depth += (tokens[place] in "([{") - (tokens[place] in ")]}")
        if depth == 0:
            return place
    raise ValueError(f"{tokens[begin]} is not closed: {' '.join(tokens[begin:begin + 20])}")


def without_template(tokens):
    """The declaration behind template <...> and [[...]]; None of a specialisation, which shares its template's name."""
    while tokens and tokens[0] in ("template", "["):
        if tokens[0] == "[":
            tokens = tokens[closed(tokens, 0) + 1:]
            continue
        depth, place = 0, 1
        while place < len(tokens):
            depth += (tokens[place] == "<") - (tokens[place] == ">")
            if depth == 0:
                break
            place += 1
        if place == 2:
            return None
        tokens = tokens[place + 1:]
    return tokens


def parameter_types(tokens):
    """Types of a function's parameters, without their names and defaults."""
    types, depth, current, default = [], 0, [], False
    for token in [*tokens, ","]:
        if token == "," and depth == 0:
            named = len(current) > 1 and re.match(r"[A-Za-z_]", current[-1]) and current[-2] not in ("::", "const")
            types.append(" ".join(current[:-1] if named else current))
            current, default = [], False
            continue
        depth += (token in "(<[{") - (token in ")>]}")
        default = default or (token == "=" and depth == 0)
        if not default:
            current.append(token)
    return ", ".join(types)


def assignment(head):
    """Where a declaration's initialiser begins; None where it has none."""
    if "operator" in head:
        return None
    depth = 0
    for place, token in enumerate(head):
        depth += (token in "([{") - (token in ")]}")
        if token == "=" and depth == 0:
            return place
    return None


def name_before(head, place):
    """The qualified name that ends before `place`."""
    begin = place - 1
    while begin >= 2 and head[begin - 1] == "::":
        begin -= 2
    return "".join(head[begin:place])


def declared(head, ends_in_body):
    """(kind, name) of what a declaration at namespace scope defines, None where it defines nothing that others see."""
    head = without_template(head)
    if not head or head[0] in ("using", "typedef", "namespace", "friend", "static_assert", "extern"):
        return None
    opening = next((place for place, token in enumerate(head)
                    if token == "(" and head[place - 1] not in ("alignas", "decltype")), None)
    assigned = assignment(head)
    if head[0] in TYPES and opening is None and assigned is None:
        if not ends_in_body:
            return None
        names = [token for token in head[1:] if token != "class" and token != "final"]
        end = names.index(":") if ":" in names else len(names)
        if "<" in names[:end]:
            return None  # a specialisation
        return ("type", "".join(names[:end])) if end else None
    if "static" in head:
        return None
    if opening is not None and (assigned is None or opening < assigned):
        if not ends_in_body:
            return None
        symbol = head.index("operator") + 1 if "operator" in head else opening
        name = name_before(head, symbol) + "".join(head[symbol:opening])
        return ("function", f"{name}({parameter_types(head[opening + 1:closed(head, opening)])})")
    inside = assigned if assigned is not None else len(head)
    if inside < 2 or ("constexpr" in head or head[0] == "const") and "inline" not in head:
        return None  # of its own in each file
    return ("variable", name_before(head, head.index("[") if "[" in head[:inside] else inside))


def definitions(text):
    """The qualified names that a source defines at namespace scope, other than those that no other source sees."""
    tokens, found = tokens_of(text), set()
    scopes, head, place = [], [], 0  # of each namespace its name; None is one without
    while place < len(tokens):
        token = tokens[place]
        if token in ("(", "[") or (token == "{" and assignment(head) is not None):
            end = closed(tokens, place)
            head += tokens[place:end + 1]
            place = end + 1
            continue
        if token == "{" and (head[:1] == ["namespace"] or head[:2] == ["inline", "namespace"]):
            scopes.append("".join(head[head.index("namespace") + 1:]) or None)
            head = []
        elif token == "{" and head[:1] == ["extern"] and len(head) == 2:
            scopes.append("")
            head = []
        elif token == "}":
            scopes.pop()
            head = []
        elif token in ("{", ";"):
            definition = declared(head, token == "{")
            if definition and None not in scopes:
                kind, name = definition
                found.add((kind, "::".join([scope for scope in scopes if scope] + [name])))
            place = closed(tokens, place) if token == "{" else place
            head = []
        else:
            head.append(token)
        place += 1
    return found


def twice(sources):
    """The definitions that several of the sources, texts by name, have: lists of those by definition."""
    by_name = collections.defaultdict(list)
    for source, text in sources.items():
        for definition in definitions(text):
            by_name[definition].append(source)
    return {definition: sorted(files) for definition, files in by_name.items() if len(files) > 1}


def project_sources():
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*"))
             if file.suffix in (".h", ".hpp", ".cpp") and file.is_file()]
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


class OneDefinition(unittest.TestCase):
    def test_no_name_is_defined_by_two_sources(self):
        sources = project_sources()
        kinds = collections.Counter(kind for text in sources.values() for kind, _ in definitions(text))
        self.assertGreater(kinds["type"], 400)
        self.assertGreater(kinds["function"], 1000)
        self.assertGreater(kinds["variable"], 50)
        found = {name: files for (_, name), files in twice(sources).items() if not name.startswith("main(")}
        self.assertEqual(found, {})

    def test_definitions_are_found(self):
        text = """
            #define UNRELATED {
            namespace a { namespace {
              struct Hidden { int x; };
            }  // namespace
            namespace b::c {
              class Declared;
              enum class Kind : int { kOne };
              template <typename T> struct Box final : Base<T> { void member() {} };
              template <> struct Box<int> {};
              inline constexpr Kind kKinds[] = {Kind::kOne};
              inline constexpr long kSize = long{1} << 20;
              constexpr int kOwn = 1;
              int declared(int x);
              bool operator==(const Kind& a, const Kind& b) { return '{' == '"'; }
              static int own() { return 0; }
              [[nodiscard]] std::vector<int> Text::read(const char* text = "}") const noexcept { return {}; }
            } }
            extern "C" { int entry(void) { return 0; } }
            """
        self.assertEqual(definitions(text), {
            ("type", "a::b::c::Kind"), ("type", "a::b::c::Box"),
            ("variable", "a::b::c::kKinds"), ("variable", "a::b::c::kSize"),
            ("function", "a::b::c::operator==(const Kind &, const Kind &)"),
            ("function", "a::b::c::Text::read(const char *)"), ("function", "entry(void)")})

    def test_two_of_one_name_are_reported(self):
        def named(first, second):
            sources = {"a.h": f"namespace n {{ {first} }}", "b.h": f"namespace n {{ {second} }}"}
            return [name for _, name in twice(sources)]

        self.assertEqual(named("struct Span { int lo; };", "struct Span { long lo; };"), ["n::Span"])
        self.assertEqual(named("class Span { };", "enum Span { kA };"), ["n::Span"])
        self.assertEqual(named("inline int f(int a) { return a; }", "inline int f(int b) { return 1; }"), ["n::f(int)"])
        self.assertEqual(named("inline constexpr int kA = 1;", "inline constexpr int kA = 2;"), ["n::kA"])
        self.assertEqual(named("struct Span { };", "struct Span;"), [])
        self.assertEqual(named("struct Span { };", "namespace { struct Span { }; }"), [])
        self.assertEqual(named("struct Span { };", "namespace m { struct Span { }; }"), [])
        self.assertEqual(named("inline int f(int a) { return a; }", "inline int f(long a) { return 1; }"), [])


if __name__ == "__main__":
    unittest.main()
