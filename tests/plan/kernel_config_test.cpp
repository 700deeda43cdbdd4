#include "compiler/plan/kernel_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace hstujit {
namespace {

using testing::HasSubstr;

KernelConfig config() {
  KernelConfig config;
  config.skeleton = "hstu_attention/sm90";
  config.block_m = 128;
  config.block_n = 64;
  config.stages = 2;
  config.consumers = 2;
  config.schedule = "persistent";
  return config;
}

TEST(KernelConfig, JsonRoundTrip) {
  const auto parsed = parse_kernel_config(to_json(config()));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, config());
}

TEST(KernelConfig, TheKeyHasNoFieldThatIsAtItsDefault) {
  EXPECT_EQ(key_text(config()), R"({"skeleton":"hstu_attention/sm90","block_m":128,"block_n":64,"stages":2,)"
                                R"("consumers":2,"schedule":"persistent"})");
  KernelConfig plain;
  plain.skeleton = "norm/rows";
  EXPECT_EQ(key_text(plain), R"({"skeleton":"norm/rows"})");
}

TEST(KernelConfig, TheKeyReadsBackAsTheConfig) {
  const auto parsed = parse_kernel_config(nlohmann::ordered_json::parse(key_text(config())));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, config());
}

TEST(KernelConfig, BadFieldsAreNamed) {
  auto json = to_json(config());
  json["schedule"] = "random";
  EXPECT_THAT(parse_kernel_config(json).status().message(),
              HasSubstr("config.schedule is \"random\"; allowed: grid, persistent"));
  json = to_json(config());
  json["stage"] = 3;
  EXPECT_THAT(parse_kernel_config(json).status().message(),
              HasSubstr("config.stage (value 3) is not a known field, did you mean \"stages\"?"));
  json = to_json(config());
  json.erase("skeleton");
  EXPECT_THAT(parse_kernel_config(json).status().message(), HasSubstr("config.skeleton is missing"));
}

TEST(KernelConfig, SizesThatNoDeviceHasAreRefused) {
  const std::tuple<const char*, int64_t, const char*> cases[] = {
      {"blocks_per_sm", 0, "an integer from 1 to 32"}, {"blocks_per_sm", 33, "an integer from 1 to 32"},
      {"stages", 0, "an integer from 1 to 16"},        {"stages", 17, "an integer from 1 to 16"},
      {"block_m", -64, "an integer from 0 to 16384"},  {"block_m", 16385, "an integer from 0 to 16384"},
      {"block_n", -1, "an integer from 0 to 16384"},   {"block_n", int64_t{1} << 40, "an integer from 0 to 16384"},
      {"consumers", 8, "an integer from 0 to 7"},      {"warps", 33, "an integer from 0 to 32"}};
  for (const auto& [name, value, allowed] : cases) {
    auto json = to_json(config());
    json[name] = value;
    const auto parsed = parse_kernel_config(json);
    EXPECT_EQ(parsed.status().code(), Code::kInvalidConfig) << name << " " << value;
    EXPECT_THAT(parsed.status().message(),
                HasSubstr(fmt::format("config.{} is {}; allowed: {}", name, value, allowed)));
  }
}

TEST(KernelConfig, DescribedInOneLine) { EXPECT_EQ(describe(config()), "sm90 128x64 stages=2 consumers=2 persistent"); }

// Another value than the one it has.
void change(int64_t& value) { ++value; }
void change(bool& value) { value = !value; }
void change(std::string& value) { value += "x"; }

TEST(KernelConfig, EveryFieldChangesTheDescriptionAndTheKey) {
  std::set<std::string> seen = {describe(config())}, keys = {key_text(config())};
  size_t fields = 0;
  const KernelConfig every;
  for_each_field(every, [&](const auto& field, const auto&) {
    KernelConfig other = config();
    change(other.*(field.member));
    EXPECT_TRUE(seen.insert(describe(other)).second) << field.name << ": " << describe(other);
    EXPECT_TRUE(keys.insert(key_text(other)).second) << field.name << ": " << key_text(other);
    ++fields;
  });
  EXPECT_EQ(seen.size(), fields + 1);
}

}  // namespace
}  // namespace hstujit
