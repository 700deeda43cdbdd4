#include "compiler/plan/kernel_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "compiler/spec/fields_json.h"
#include "compiler/support/config_aliases.h"
#include "tests/paths.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

KernelConfig config() {
  KernelConfig config{"fake/usable", AttentionConfig()};
  config.attention().block_m = 128;
  config.attention().block_n = 64;
  config.attention().stages = 2;
  config.attention().consumers = 2;
  config.attention().schedule = "persistent";
  return config;
}

TEST(KernelConfig, JsonRoundTrip) {
  const auto parsed = parse_kernel_config(to_json(config()));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, config());
}

TEST(KernelConfig, TheKeyHasNoFieldThatIsAtItsDefault) {
  EXPECT_EQ(key_text(config()), R"({"skeleton":"fake/usable","block_m":128,"block_n":64,"stages":2,)"
                                R"("consumers":2,"schedule":"persistent"})");
  EXPECT_EQ(key_text({"norm/rows", RowConfig()}), R"({"skeleton":"norm/rows"})");
}

TEST(KernelConfig, TheKeyReadsBackAsTheConfig) {
  const auto parsed = parse_kernel_config(nlohmann::ordered_json::parse(key_text(config())));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, config());
}

// Fields alone, before anybody knows whose they replace.
TEST(KernelConfig, FieldsAreRightWhereTheyAreForSomeFamily) {
  const auto error_of = [](const char* text) {
    return check_config_fields(nlohmann::ordered_json::parse(text), "GIVEN").message();
  };
  EXPECT_EQ(error_of(R"({"block_m": 64, "threads_per_row": 8, "warps": 0, "lanes_arrive": true})"), "");
  EXPECT_EQ(error_of(R"({"stages": 16, "share_columns": true})"), "");
  EXPECT_EQ(error_of(R"({"split_k": 4, "raster_rows": 2, "block_n": 256})"), "");
  EXPECT_THAT(error_of(R"({"blockm": 7})"), HasSubstr("GIVEN.blockm (value 7) is not a known field, did you mean"));
  EXPECT_THAT(error_of(R"({"stages": 17})"), HasSubstr("GIVEN.stages is 17; allowed: an integer from 1 to 16"));
  EXPECT_EQ(
      error_of(R"({"stages": 17, "blockm": 7, "block_n": 64, "lanes_arrive": 1})"),
      error_of(R"({"blockm": 7})") + "\n" + error_of(R"({"stages": 17})") + "\n" + error_of(R"({"lanes_arrive": 1})"));
  EXPECT_EQ(error_of(R"({"skeleton": "fake/usable", "threads_per_row": 8, "stages": 17})"),
            error_of(R"({"skeleton": "fake/usable", "threads_per_row": 8})") + "\n" +
                error_of(R"({"skeleton": "fake/usable", "stages": 17})"));
  EXPECT_THAT(error_of(R"({"lanes_arrive": "yes"})"),
              HasSubstr("GIVEN.lanes_arrive is \"yes\"; allowed: true or false"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("GIVEN is [1]; allowed: a JSON object of config fields"));
  EXPECT_THAT(error_of(R"({"skeleton": "fake/absent"})"), HasSubstr("GIVEN: "));
  for (const char* name : {"usable", "usabel"}) {
    EXPECT_THAT(error_of(fmt::format(R"({{"skeleton": "{}"}})", name).c_str()),
                HasSubstr("is not part of this build, did you mean \"fake/usable\"?"));
  }
  EXPECT_THAT(error_of(R"({"num_stages": 3})"), HasSubstr("is not a known field, did you mean \"stages\"?"));
  EXPECT_THAT(error_of(R"({"num_warps": 4})"), HasSubstr("is not a known field, did you mean \"warps\"?"));
  EXPECT_EQ(error_of(R"({"skeleton": "fake/usable", "block_m": 64})"), "");
  EXPECT_THAT(error_of(R"({"skeleton": "fake/usable", "threads_per_row": 8})"), HasSubstr("GIVEN.threads_per_row"));
}

template <typename T>
void expect_documented(const std::string& page, const std::string& heading) {
  std::string table = heading + "\n|---|---|---|\n";
  T defaults;
  for (const FieldSlot& slot : field_slots(defaults)) {
    FieldRules rules = slot.rules;
    rules.doc = {};
    const Json initial = slot.write(slot.value);
    table += fmt::format("| `{}` | {} | {} |\n", rules.name,
                         initial.is_string() ? "`" + initial.get<std::string>() + "`" : initial.dump(),
                         describe_rules(rules, initial));
  }
  EXPECT_THAT(page, HasSubstr(table));
}

TEST(KernelConfig, TheFieldsAreDocumentedWithTheirDefaults) {
  const auto page = whole_file(source_path("/docs/tuning.md"));
  ASSERT_TRUE(page.ok()) << page.status().message();
  expect_documented<AttentionConfig>(*page, "| field of attention | default | allowed |");
  expect_documented<RowConfig>(*page, "| field of rows | default | allowed |");
  expect_documented<ScanConfig>(*page, "| field of `complete_cumsum` | default | allowed |");
  expect_documented<GemmConfig>(*page, "| field of products | default | allowed |");
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
  EXPECT_THAT(parse_kernel_config(json).status().message(), HasSubstr("the name of a skeleton"));
  json["skeleton"] = "fake/absent";
  EXPECT_THAT(
      parse_kernel_config(json).status().message(),
      HasSubstr("config: skeleton \"fake/absent\" is not part of this build; allowed: fake/unusable, fake/usable"));
  EXPECT_EQ(parse_kernel_config(json).status().code(), Code::kInvalidConfig);
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

TEST(KernelConfig, DescribedInOneLine) {
  EXPECT_EQ(describe(config()), "usable 128x64 stages=2 consumers=2 persistent");
}

// Another value than the one it has.
void change(int64_t& value) { ++value; }
void change(bool& value) { value = !value; }
void change(std::string& value) { value += "x"; }

// Checks one object of a config, which `object_of` gives.
template <typename ObjectOf>
void expect_every_field_tells(const KernelConfig& config, const ObjectOf& object_of) {
  std::set<std::string> seen = {describe(config)}, keys = {key_text(config)};
  KernelConfig every = config;
  for_each_field(object_of(every), [&](const auto& field, const auto&) {
    KernelConfig other = config;
    change(object_of(other).*(field.member));
    EXPECT_TRUE(seen.insert(describe(other)).second) << field.name << ": " << describe(other);
    EXPECT_TRUE(keys.insert(key_text(other)).second) << field.name << ": " << key_text(other);
  });
  EXPECT_GT(seen.size(), 1u);
}

TEST(KernelConfig, EveryFieldChangesTheDescriptionAndTheKey) {
  expect_every_field_tells(config(), [](KernelConfig& c) -> AttentionConfig& { return c.attention(); });
  expect_every_field_tells(config(), [](KernelConfig& c) -> SanitizerSwitches& { return c.sanitizer; });
  expect_every_field_tells({"norm/rows", RowConfig()}, [](KernelConfig& c) -> RowConfig& { return c.row(); });
  expect_every_field_tells({"scan/forward", ScanConfig()},
                           [](KernelConfig& c) -> ScanConfig& { return std::get<ScanConfig>(c.tunables); });
  expect_every_field_tells({"gemm/sm90", GemmConfig()},
                           [](KernelConfig& c) -> GemmConfig& { return std::get<GemmConfig>(c.tunables); });
}

TEST(KernelConfig, SwitchesForSanitizersAreReadAndWritten) {
  KernelConfig switched = config();
  switched.sanitizer.lanes_arrive = true;
  EXPECT_THAT(key_text(switched), HasSubstr(R"("lanes_arrive":true)"));
  const auto parsed = parse_kernel_config(to_json(switched));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, switched);
}

TEST(ConfigAliases, SkeletonsOfEarlierLibrariesHaveNamesOfToday) {
  for (const auto& [earlier, name] : {std::pair("hstu_attention/sm80", "attention/sm80_forward"),
                                      {"hstu_attention/sm90", "attention/sm90_forward"},
                                      {"delta_hstu_attention/sm80", "attention/sm80_forward"},
                                      {"delta_hstu_attention/sm90", "attention/sm90_forward"},
                                      {"hstu_attention/sm80_backward", "attention/sm80_backward"},
                                      {"hstu_attention/sm90_backward", "attention/sm90_backward_twopass"},
                                      {"hstu_attention/sm90_backward_fused", "attention/sm90_backward_fused"}}) {
    const nlohmann::ordered_json config = {{"skeleton", earlier}, {"stages", 3}};
    EXPECT_EQ(with_current_names(config).dump(), fmt::format(R"({{"skeleton":"{}","stages":3}})", name));
  }
}

TEST(ConfigAliases, FieldsAndSchedulesOfEarlierLibrariesHaveNamesOfToday) {
  for (const auto& [earlier, name] :
       {std::pair(R"({"share_columns":true,"stages":3})", R"({"split_kv":true,"stages":3})"),
        {R"({"schedule":"ordered"})", R"({"schedule":"semaphore"})"},
        {R"({"schedule":"whole"})", R"({"schedule":"per_sequence"})"}}) {
    EXPECT_EQ(with_current_names(nlohmann::ordered_json::parse(earlier)).dump(), name);
  }
}

TEST(ConfigAliases, WhatHasNoEarlierNameIsGivenBackAsItIs) {
  for (const char* text :
       {"null", "[1]", R"({"stages":3})", R"({"skeleton":4})", R"({"skeleton":"of another"})", R"({"schedule":4})",
        R"({"schedule":"persistent"})", R"({"split_kv":false,"share_columns":true})"}) {
    EXPECT_EQ(with_current_names(nlohmann::ordered_json::parse(text)).dump(), text);
  }
}

// A record or a choice of anybody's may have as many members as its megabytes hold.
TEST(ConfigAliases, ManyMembersTakeNoTime) {
  std::string text = R"({"share_columns":true)";
  for (int i = 0; i < 120'000; ++i) text += fmt::format(",\"a{}\":1", i);
  const auto start = std::chrono::steady_clock::now();
  const Json renamed = with_current_names(json_or_null(text + "}"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(renamed.size(), 120'001u);
  EXPECT_EQ(renamed.begin().key(), "split_kv");
}

TEST(KernelConfig, TheOrderOfTilesChangesNoRegisters) {
  const KernelConfig tile{"gemm/sm80", GemmConfig{.block_m = 128, .block_n = 256, .stages = 3}};
  const auto with = [&](auto member, int64_t value) {
    KernelConfig other = tile;
    std::get<GemmConfig>(other.tunables).*member = value;
    return other;
  };
  EXPECT_TRUE(same_registers(tile, tile));
  EXPECT_TRUE(same_registers(tile, with(&GemmConfig::raster_rows, 16)));
  EXPECT_FALSE(same_registers(tile, with(&GemmConfig::stages, 2)));
  EXPECT_FALSE(same_registers(tile, with(&GemmConfig::block_n, 128)));
  KernelConfig other = tile;
  other.skeleton = "gemm/sm90";
  EXPECT_FALSE(same_registers(tile, other));
  EXPECT_FALSE(same_registers(tile, {"gemm/sm80", RowConfig()}));
}

TEST(KernelConfig, AConfigOfAnEarlierLibraryIsRead) {
  KernelConfig expected = config();
  expected.attention().schedule = "per_sequence";
  expected.attention().split_kv = true;
  const auto parsed = parse_kernel_config({{"skeleton", "fake/usable"},
                                           {"block_m", 128},
                                           {"block_n", 64},
                                           {"stages", 2},
                                           {"consumers", 2},
                                           {"schedule", "whole"},
                                           {"share_columns", true}});
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, expected);
}

}  // namespace
}  // namespace hstujit
