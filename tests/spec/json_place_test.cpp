#include "compiler/spec/json_place.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>

#include "compiler/spec/json_text.h"
#include "tests/support/little_memory.h"

namespace hstujit {
namespace {

// Everything that a config may hold, with what may stand between.
constexpr char kText[] = R"(// a comment with "text": {
{
  "a" : 1, /* "b": 2, */ "b": [ 1.5e3, -2, [], {}, [true, [null]] ],
  "c.d[0]": {"e": "x\"}//", "f g": false},	"u\u0061": "\\",
  "": {"": [{"deep": [0, {"er": "/* no comment */"}]}]}, // "z": 1
  "last": {"one":/**/3}})";

void collect(const Json& value, const std::string& path, std::map<std::string, Json>& values) {
  values[path] = value;
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) collect(value[i], fmt::format("{}[{}]", path, i), values);
  } else if (value.is_object()) {
    for (const auto& [name, member] : value.items()) collect(member, join_path(path, name), values);
  }
}

TEST(JsonPlaces, EveryValueIsWhereTheTextHasIt) {
  const std::string text = kText;
  const auto json = parse_json_text(text, "text");
  ASSERT_TRUE(json.ok()) << json.status().message();
  std::map<std::string, Json> values;
  collect(*json, "", values);
  EXPECT_GT(values.size(), 20u);
  std::set<std::string> paths;
  for (const auto& [path, value] : values) paths.insert(path);
  const JsonPlaces places(text, paths);
  std::set<size_t> bytes;
  for (const auto& [path, value] : values) {
    const JsonPlace place = places.of(path);
    const std::string rest = text.substr(place.value);
    if (value.is_structured()) {
      EXPECT_EQ(rest[0], value.is_array() ? '[' : '{') << path;
    } else if (value.is_number()) {
      EXPECT_EQ(std::stod(rest), value.get<double>()) << path;
    } else {
      EXPECT_TRUE(rest.starts_with(value.dump())) << path << " at " << rest;
    }
    EXPECT_EQ(text[place.name] == '"' || place.name == place.value, true) << path;
    EXPECT_TRUE(bytes.insert(place.value).second) << path << " stands where another value does";
  }
  EXPECT_TRUE(text.substr(places.of("ua").name).starts_with("\"u\\u0061\""));
  EXPECT_TRUE(text.substr(places.of("[\"c.d[0]\"][\"f g\"]").name).starts_with("\"f g\""));
}

TEST(JsonPlaces, WhatIsNotThereIsWhereItsObjectIs) {
  const std::string text = R"({"ops": [{"name": "a"}]})";
  const JsonPlaces places(text, {"ops[0].heads", "ops[1].x.y", "none", "ops[0].name.deeper"});
  EXPECT_EQ(places.of("ops[0].heads").value, text.find("{\"name"));
  EXPECT_EQ(places.of("ops[1].x.y").value, text.find('['));
  EXPECT_EQ(places.of("none").value, 0u);
  EXPECT_EQ(places.of("ops[0].name.deeper").value, text.find("\"a\""));
}

TEST(JsonPlaces, AByteOrderMarkIsNoValue) {
  EXPECT_EQ(JsonPlaces("\xEF\xBB\xBF {\"a\": 1}", {"a"}).of("a").value, 10u);
}

TEST(JsonPlaces, TextThatIsNoJsonDoesNoHarm) {
  for (const char* text : {"", "{", "[", "\"", "{\"a", "{\"a\":", "[1,", "}", ":::", "/*", "//", "[/", "{\"a\\", "[,,]",
                           "{{{{", "]]]]", "{1:2}", "\xEF\xBB\xBF"}) {
    const JsonPlace place = JsonPlaces(text, {"a", "[0]", "[1]"}).of("[0]");
    EXPECT_LE(place.value, std::string_view(text).size()) << text;
  }
}

TEST(JsonPlaces, DepthTakesNoStack) {
  const std::string text(200'000, '[');
  EXPECT_EQ(JsonPlaces(text, {"[0]"}).of("[0]").value, 1u);
}

// A path was stripped at each dot of a name, and each beginning of it kept.
TEST(JsonPlaces, DotsAndBracketsInANameTakeNoMemory) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer's own memory cannot be limited";
  std::string name;
  for (int i = 0; i < 30'000; ++i) name += i % 2 == 0 ? "a." : "[b";
  const std::string text = R"({"ops": [{")" + name + R"(": {"c": 1}}]})";
  EXPECT_TRUE(with_little_memory([&] {
    const std::string path = join_path(join_path("ops[0]", name), "c");
    return JsonPlaces(text, {path}).of(path).value == text.find('1');
  }));
}

// Each name in it had all of the path before it copied.
TEST(JsonPlaces, NamesBelowALongOneTakeNoTime) {
  std::string text = "{\"" + std::string(size_t{4} << 20, 'x') + "\": {";
  for (int i = 0; i < 100'000; ++i) text += fmt::format("\"{}\": 1, ", i);
  text += R"("last": 1}, "b": {"a": 1}})";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(JsonPlaces(text, {"b.a"}).of("b.a").value, text.rfind('1'));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(LineAndColumn, CountFromOneInBytes) {
  EXPECT_EQ(line_and_column("ab\ncd", 0), "1:1");
  EXPECT_EQ(line_and_column("ab\ncd", 2), "1:3");
  EXPECT_EQ(line_and_column("ab\ncd", 3), "2:1");
  EXPECT_EQ(line_and_column("ab\r\ncd", 5), "2:2");
  EXPECT_EQ(line_and_column("ab", 99), "1:3");
}

}  // namespace
}  // namespace hstujit
