#include "compiler/spec/schema.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/spec/config.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/operators_header.h"
#include "compiler/spec/parameters_page.h"
#include "compiler/support/files.h"
#include "tests/paths.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

// The schema of an entry of "ops" for one operator; null when there is none.
Json entry_of(const Json& schema, const Json& op) {
  for (const Json& entry : schema["properties"]["ops"]["items"]["anyOf"]) {
    if (entry["properties"]["op"]["const"] == op) return entry;
  }
  return nullptr;
}

TEST(Schema, HasEveryFieldWithItsRules) {
  const Json schema = config_schema();
  const Json entry = entry_of(schema, "hstu_attention");
  ASSERT_TRUE(entry.is_object());
  EXPECT_EQ(entry["additionalProperties"], false);
  for (const std::string_view name : field_names<HstuAttentionParams>())
    EXPECT_TRUE(entry["properties"].contains(name)) << name;
  for (const std::string_view name : instance_field_names("hstu_attention"))
    EXPECT_TRUE(entry["properties"].contains(name)) << name;
  EXPECT_EQ(entry["required"], Json::array({"name"})) << "the defaults may say op";
  EXPECT_EQ(entry["properties"]["attn_dim"]["minimum"], 1);
  EXPECT_EQ(entry["properties"]["attn_dim"]["maximum"], 256);
  EXPECT_FALSE(entry["properties"]["attn_dim"].contains("default"));
  EXPECT_EQ(entry["properties"]["dtype"]["enum"], Json::array({"bf16", "fp16", "fp32"}));
  EXPECT_EQ(entry["properties"]["dtype"]["default"], "bf16");
  EXPECT_EQ(entry["properties"]["num_targets"]["type"], Json::array({"boolean", "integer"}));
  EXPECT_EQ(entry["properties"]["max_attn_len"]["minimum"], -1);
  EXPECT_TRUE(schema["properties"]["defaults"]["properties"].contains("heads"));
  EXPECT_FALSE(schema["properties"]["defaults"]["properties"].contains("name"));
  EXPECT_EQ(schema["properties"]["tuning"]["properties"]["length_mode"]["default"], "pow2");
  EXPECT_EQ(schema["required"], Json::array({"version", "ops"}));
}

// An operator's entry holds delta_len where launches say a max_delta_len, of all instances or with targets_only.
TEST(Schema, OnlyOperatorsOnLastRowsTakeADeltaLen) {
  const Json schema = config_schema();
  for (const std::string_view op : operator_names()) {
    const Json entry = entry_of(schema, op);
    Json parameters = {{"op", op}};
    const Json own = operator_schema(op);
    for (const Json& required : own["required"]) parameters[required.get<std::string>()] = 32;
    const auto spec = parse_op_spec(parameters, "");
    ASSERT_TRUE(spec.ok()) << spec.status().message();
    const bool takes = find_argument((*spec)->signature(Direction::kForward), "max_delta_len") >= 0 ||
                       own["properties"].contains("targets_only");
    EXPECT_EQ(entry["properties"].contains("delta_len"), takes) << op;
    const std::vector<std::string_view> names = instance_field_names(op);
    EXPECT_EQ(std::count(names.begin(), names.end(), "delta_len"), takes ? 1 : 0) << op;
  }
  EXPECT_TRUE(schema["properties"]["defaults"]["properties"].contains("delta_len"));
}

TEST(Schema, TheParametersAreDocumented) {
  const auto page = whole_file(source_path("/docs/parameters.md"));
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(*page, parameters_page()) << "run `make docs`";
}

TEST(Schema, TheStructsOfTheCppInterfaceAreCurrent) {
  const auto header = whole_file(source_path("/include/hstujit/operators.hpp"));
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(*header, operators_header()) << "run `make docs`";
}

// The file that the examples name by "$schema".
TEST(Schema, FileIsCurrent) {
  const auto file = whole_file(source_path("/hstujit.schema.json"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(*file, config_schema().dump(2) + "\n") << "run `make docs`";
}

TEST(Schema, EveryNameOfTheExamplesIsInIt) {
  const Json schema = config_schema();
  for (const char* name :
       {"ml100k.json", "dlrm_hstu.json", "own_mask.json", "own_score.json", "sequences.json", "serve.json"}) {
    const auto text = whole_file(std::filesystem::path(source_path("/examples/configs")) / name);
    ASSERT_TRUE(text.ok());
    const auto config = parse_json_text(*text, name);
    ASSERT_TRUE(config.ok()) << config.status().message();
    for (const auto& [field, value] : config->items()) EXPECT_TRUE(schema["properties"].contains(field)) << field;
    for (const Json& instance : (*config)["ops"]) {
      const Json entry = entry_of(schema, instance.contains("op") ? instance["op"] : (*config)["defaults"]["op"]);
      ASSERT_TRUE(entry.is_object()) << instance.dump();
      for (const auto& [field, value] : instance.items()) EXPECT_TRUE(entry["properties"].contains(field)) << field;
    }
  }
}

}  // namespace
}  // namespace hstujit
