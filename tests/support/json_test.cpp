#include "compiler/support/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <utility>
#include <vector>

#include "tests/support/little_memory.h"
#include "tests/support/sanitized.h"

namespace hstujit {
namespace {

using testing::HasSubstr;
using testing::Lt;
using testing::StartsWith;

std::string nested(size_t depth, std::string_view open, std::string_view close) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  text += "1";
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
}

std::string mistake_in(std::string_view text, const JsonRules& rules = {}) {
  const auto json = parse_json(text, rules);
  EXPECT_FALSE(json.ok()) << text.substr(0, 100);
  EXPECT_EQ(json.status().code(), Code::kInvalidConfig);
  return json.status().message();
}

TEST(Json, ReadsEveryKindOfValueInOrder) {
  const std::string text = R"({"b":[1,-2,2.5,true,false,null,"x\"\n"],"a":{"c":[],"d":{}},"":""})";
  const auto json = parse_json(text);
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(dump_json(*json), text);
  EXPECT_TRUE((*json)["b"][0].is_number_unsigned());
  EXPECT_TRUE((*json)["b"][1].is_number_integer());
  EXPECT_TRUE((*json)["b"][2].is_number_float());
}

TEST(Json, SaysWhereTheMistakeIs) {
  EXPECT_THAT(mistake_in(""), StartsWith("1:1: malformed JSON: "));
  EXPECT_THAT(mistake_in("{\n  \"a\": 1,\n  ]"), StartsWith("3:3: malformed JSON: "));
  EXPECT_THAT(mistake_in("[1] 2"), StartsWith("1:5: malformed JSON: "));
  EXPECT_EQ(mistake_in("[1, 2,\n ]"), "2:2: malformed JSON: a comma comes before ']'");
  EXPECT_EQ(mistake_in("{\"a\": 1,}"), "1:9: malformed JSON: a comma comes before '}'");
  EXPECT_THAT(mistake_in("[1, // one\n2]"), StartsWith("1:5: malformed JSON: "));
  EXPECT_TRUE(parse_json("[1, // one\n2 /* two */]", {.comments = true}).ok());
}

TEST(Json, ANulByteIsNoEnd) {
  const std::string nul(1, '\0');
  EXPECT_EQ(mistake_in("{\"a\": 1}\n" + nul), "2:1: malformed JSON: a NUL byte, which no JSON text has");
  EXPECT_THAT(mistake_in("[1]" + nul + "garbage"), StartsWith("1:4: malformed JSON: a NUL byte"));
  EXPECT_THAT(mistake_in("[1" + nul + "]"), StartsWith("1:3: malformed JSON: a NUL byte"));
  EXPECT_THAT(mistake_in(nul), StartsWith("1:1: malformed JSON: a NUL byte"));
  EXPECT_THAT(mistake_in("\"a" + nul + "\""), StartsWith("1:3: malformed JSON: "));
  EXPECT_THAT(mistake_in("[1] // end" + nul, {.comments = true}), StartsWith("1:11: malformed JSON: a NUL byte"));
  EXPECT_THAT(mistake_in("[} " + nul), StartsWith("1:2: malformed JSON: unexpected")) << "the first mistake";
  EXPECT_EQ(*parse_json("\"\\u0000\""), Json(nul)) << "escaped it is a character as any other";
}

TEST(Json, RefusesWhatLiesTooDeep) {
  if (kThreadSanitized) GTEST_SKIP() << "one thread";
  constexpr size_t kMax = kMaxJsonDepth;
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}"), std::pair("[{\"a\":", "}]")}) {
    const size_t levels = std::string_view(open).size() == 6 ? 2 : 1;
    EXPECT_TRUE(parse_json(nested(kMax / levels, open, close)).ok()) << open;
    EXPECT_THAT(mistake_in(nested(kMax / levels + 1, open, close)), HasSubstr("more than 64 deep")) << open;
    // More than any stack holds, whole and torn.
    EXPECT_THAT(mistake_in(nested(1'000'000, open, close)), HasSubstr("more than 64 deep")) << open;
    EXPECT_THAT(mistake_in(nested(1'000'000, open, "")), HasSubstr("more than 64 deep")) << open;
    EXPECT_TRUE(parse_json(nested(kMax, open, close), {.depth = kMaxReportDepth}).ok()) << open;
    EXPECT_TRUE(json_or_null(nested(1'000'000, open, close)).is_null()) << open;
  }
  EXPECT_EQ(mistake_in("\n" + nested(65, "[", "]")), "2:65: lists and objects are nested more than 64 deep");
  // Brackets in texts and in comments are none.
  EXPECT_TRUE(parse_json("\"" + std::string(100, '[') + "\"").ok());
  EXPECT_TRUE(parse_json("1 // " + std::string(100, '['), {.comments = true}).ok());
}

TEST(Json, NumbersOutOfRangeAreMistakes) {
  EXPECT_EQ(mistake_in("{\n\"a\": 1e999}"), "2:10: malformed JSON: the number 1e999 is out of range");
  EXPECT_EQ(mistake_in("-1e400"), "1:6: malformed JSON: the number -1e400 is out of range");
  EXPECT_THAT(mistake_in(std::string(100'000, '9')), testing::SizeIs(Lt(200)));
}

TEST(Json, IntegersFitIntoInt64) {
  EXPECT_EQ(json_or_null("9223372036854775807").get<int64_t>(), INT64_MAX);
  EXPECT_EQ(json_or_null("-9223372036854775808").get<int64_t>(), INT64_MIN);
  for (const char* const text : {"9223372036854775808", "18446744073709551615", "18446744073709551616"}) {
    EXPECT_FALSE(json_or_null(text).is_number_integer()) << text;
    EXPECT_GT(json_or_null(text).get<double>(), 9e18) << text;
  }
}

TEST(Json, ANameMayStandOnceInAnObject) {
  EXPECT_EQ(mistake_in("{\"a\": 1,\n \"b\": {\"a\": 1}, \"a\": 2}"),
            "2:17: the name \"a\" occurs twice in one object; each may occur once");
  EXPECT_EQ(mistake_in("{\"\\\"\\\\\": 1, \"\\\"\\\\\": 2}"),
            "1:13: the name \"\\\"\\\\\" occurs twice in one object; each may occur once");
  EXPECT_TRUE(parse_json(R"([{"a": 1}, {"a": {"a": 2}}])").ok());
}

TEST(Json, ManyNamesTakeNoSquareOfTime) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += "\"" + std::to_string(i) + "\":0,";
  text.back() = '}';
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(json_or_null(text).size(), 100'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));  // the square takes minutes
}

TEST(Json, SentencesAreShort) {
  const std::string name(1'000'000, 'x');
  EXPECT_THAT(mistake_in("{\"" + name + "\": 1, \"" + name + "\": 2}"), testing::SizeIs(Lt(300)));
  EXPECT_THAT(mistake_in("[\"" + name), testing::SizeIs(Lt(300)));
  EXPECT_THAT(brief_json(Json(name)), testing::SizeIs(Lt(100)));
}

TEST(Json, SentencesOfLargeValuesTakeNoTime) {
  const std::string text(1000, 'x');
  Json list = Json::array(), object = Json::object();
  for (int i = 0; i < 1000; ++i) {
    list.push_back({i, text});
    object[text + std::to_string(i)] = i;
  }
  for (const Json& value : {Json("\xe2\x80\xae" + text), Json({{"a", list}}), list, object,
                            Json({1, {{"b", {}}}, nullptr}), Json(2.5), Json(std::string(500, '\xff'))}) {
    const Json part = brief_part(value);
    EXPECT_EQ(brief_json(part), brief_json(value));
    EXPECT_LT(dump_json(part).size(), 1000u);
    EXPECT_EQ(part.type(), value.type());
  }
  EXPECT_EQ(brief_part({1, {{"b", {}}}, nullptr}), Json({1, {{"b", {}}}, nullptr}));
}

// Takes all memory that a process may have, in parts that are smaller and smaller, down to each size that malloc keeps.
class AllMemory {
 public:
  AllMemory() {
    constexpr size_t kStep = 16;
    for (size_t size = size_t{1} << 20; size > 0; size = size > 2048 ? size / 2 : size - kStep) {
      while (void* const part = ::operator new(size, std::nothrow)) last_ = new (part) Part{last_};
    }
  }
  ~AllMemory() {
    while (last_ != nullptr) ::operator delete(std::exchange(last_, last_->before));
  }
  AllMemory(const AllMemory&) = delete;
  AllMemory& operator=(const AllMemory&) = delete;

 private:
  struct Part {
    Part* before;
  };
  Part* last_ = nullptr;
};

template <typename Body>
bool runs_out_of_memory(const Body& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

// The library's destructors take memory: std::bad_alloc ended a process on its way through a value.
TEST(Json, ValuesGoWhereThereIsNoMemory) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer's own memory cannot be limited";
  EXPECT_TRUE(with_little_memory([] {
    Json value = json_or_null(R"({"a": [1, [2], {"b": "a text that lies in memory of its own"}], "c": {"d": {}}})");
    SortedJson sorted = value;
    Json nothing, list;
    const std::string name = "a";
    const AllMemory all;
    // A value that was to become an object or a list, and could not.
    const bool none = runs_out_of_memory([&] { nothing[name] = 1; }) && runs_out_of_memory([&] { list.push_back(1); });
    value = nothing = list = nullptr;
    sorted = nullptr;
    return none;
  }));
}

TEST(Json, ACopyThatMemoryDoesNotHoldIsAnException) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer's own memory cannot be limited";
  std::string text = "[0";
  for (int i = 0; i < 20'000; ++i) text += R"(,{"a": [1, 2, 3], "b": {"c": null}})";
  text += "]";
  std::string texts = "[0";
  for (int i = 0; i < 20; ++i) texts += "," + text;
  texts += "]";
  EXPECT_TRUE(with_little_memory([&] {
    const Json value = json_or_null(text);
    return value.size() == 20'001 && runs_out_of_memory([&] {
             std::vector<Json> copies;
             while (true) copies.push_back(value);
           });
  }));
  EXPECT_TRUE(with_little_memory([&] { return parse_json(texts).status().code() == Code::kOutOfMemory; }));
  // Null would be another answer.
  EXPECT_TRUE(with_little_memory([&] { return runs_out_of_memory([&] { json_or_null(texts); }); }));
}

// The parser keeps blanks for its message and escapes them there: 64 MiB took 47 seconds.
TEST(Json, WhatATextMayHoldIsBounded) {
  if (kThreadSanitized) GTEST_SKIP() << "one thread";
  const auto bounded = [](const std::string& text, const char* sentence, bool comments = false) {
    const auto start = std::chrono::steady_clock::now();
    const auto json = parse_json(text, {.comments = comments});
    EXPECT_FALSE(json.ok());
    EXPECT_THAT(json.status().message(), HasSubstr(sentence));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  };
  const std::string newlines(size_t{8} << 20, '\n');
  for (const char* begin : {"", "[", "{\"a\": 1,"})
    bounded(begin + newlines + "x", "more than 65536 blanks and characters of comments");
  bounded("/*" + newlines + "*/ 1 x", "blanks and characters of comments", true);
  bounded("// " + std::string(70'000, '\x01') + "\n 1 x", "blanks and characters of comments", true);
  EXPECT_TRUE(parse_json(std::string(65'000, ' ') + "\"" + std::string(70'000, ' ') + "\"").ok());
  EXPECT_TRUE(parse_json("[1 /* \" */, // \"\n \"\\\" // no comment\"]", {.comments = true}).ok());

  std::string values = "[0", names = "{\"0\": 0";
  for (size_t i = 1; i < kMaxJsonValues; ++i) values += ",0";
  bounded(values + "]", "1:8388609: the text has more than 4194304 values");
  for (size_t i = 1; i <= kMaxJsonNames; ++i) names += ",\"" + std::to_string(i) + "\":0";
  bounded(names + "}", "an object has more than 131072 names");
}

TEST(Json, TextThatIsNoUtf8IsReplacedWhereItIsWritten) {
  EXPECT_EQ(dump_json(Json("a\xff")), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(mistake_in("\"a\xff\"").find("malformed JSON"), 5u);
}

TEST(Json, MembersOfAnotherTypeGiveTheFallback) {
  const Json object = json_or_null(R"({"text": "a", "count": 3, "time": 2.5, "big": 18446744073709551615})");
  EXPECT_EQ(text_member(object, "text"), "a");
  EXPECT_EQ(text_member(object, "count", "none"), "none");
  EXPECT_EQ(integer_member(object, "count", -1), 3);
  EXPECT_EQ(integer_member(object, "time", -1), -1);
  EXPECT_EQ(integer_member(object, "big", -1), -1);
  EXPECT_EQ(number_member(object, "time", -1), 2.5);
  EXPECT_EQ(number_member(object, "text", -1), -1);
  EXPECT_EQ(integer_member(Json(1), "count", -1), -1);
  EXPECT_EQ(text_member(Json(), "text", "none"), "none");
}

}  // namespace
}  // namespace hstujit
