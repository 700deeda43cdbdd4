// Configs of the same fields and values are equal, however their texts were written.
#include "autotune_cache/records/recorded_config.h"

#include <gtest/gtest.h>

namespace hstujit {
namespace {

TEST(RecordedConfigTest, TheWayToWriteItDoesNotCount) {
  const auto equal = [](const char* a, const char* b) { return RecordedConfig(a) == RecordedConfig(b); };
  EXPECT_TRUE(equal(R"({"a":1,"b":2})", R"({ "b": 2, "a": 1 })"));
  EXPECT_TRUE(equal(R"({"a":{"b":1,"c":2}})", R"({"a":{"c":2,"b":1}})"));
  EXPECT_TRUE(equal(R"({"a":1})", R"({"a":1.0})"));
  EXPECT_TRUE(equal(R"({"a":10})", R"({"a":1e1})"));
  EXPECT_TRUE(equal(R"({"a":"b"})", R"({"a":"\u0062"})"));
  EXPECT_FALSE(equal(R"({"a":1})", R"({"a":2})"));
  EXPECT_FALSE(equal(R"({"a":12})", R"({"a":21})"));
  EXPECT_FALSE(equal(R"({"a":1.5})", R"({"a":1})"));
  EXPECT_FALSE(equal(R"({"a":9007199254740993})", R"({"a":9007199254740992})"));
}

TEST(RecordedConfigTest, ATextThatIsNotJsonIsEqualToItselfAlone) {
  EXPECT_EQ(RecordedConfig("not json").text(), "not json");
  EXPECT_NE(RecordedConfig("not json"), RecordedConfig("nor this"));
  EXPECT_EQ(RecordedConfig("not json").to_json().status().code(), Code::kInvalidArgument);
  EXPECT_EQ(RecordedConfig("[1]").to_json().status().code(), Code::kInvalidArgument);
}

TEST(RecordedConfigTest, AMemberHasTheNamesOfToday) {
  const Json object = {{"config", {{"skeleton", "hstu_attention/sm80"}, {"a", 1.0}}}};
  EXPECT_EQ(RecordedConfig::member_of(object).text(), R"({"a":1,"skeleton":"attention/sm80_forward"})");
  EXPECT_TRUE(RecordedConfig::member_of({{"config", 3}}).empty());
  EXPECT_TRUE(RecordedConfig::member_of(Json::array()).empty());
}

}  // namespace
}  // namespace hstujit
