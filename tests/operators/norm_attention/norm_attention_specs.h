// Instances that the tests of norm_attention share.
#pragma once

#include <gtest/gtest.h>

#include "compiler/spec/op_spec.h"
#include "compiler/support/json.h"

namespace hstujit {

// Two heads of 8 and 16: rows of 64 columns.
inline OpSpecPtr norm_attention(const nlohmann::ordered_json& more = nlohmann::ordered_json::object()) {
  nlohmann::ordered_json json = {{"op", "norm_attention"}, {"heads", 2}, {"attn_dim", 8}, {"hidden_dim", 16}};
  json.update(more);
  const Result<OpSpecPtr> spec = parse_op_spec(json, "");
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return *spec;
}

}  // namespace hstujit
