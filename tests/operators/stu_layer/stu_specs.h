// Instances that the tests of a layer and of its halves share.
#pragma once

#include <gtest/gtest.h>

#include "compiler/spec/op_spec.h"
#include "compiler/support/json.h"

namespace hstujit {

// Two heads of 8 and 16, rows of 24: the projection has 96 columns.
inline Json stu_json(const std::string& op, const Json& more) {
  Json json = {{"op", op}, {"width", 24}, {"heads", 2}, {"hidden_dim", 16}};
  if (op != "hstu_compute_output") json["attn_dim"] = 8;
  json.update(more);
  return json;
}

inline OpSpecPtr stu(const std::string& op, const Json& more = Json::object()) {
  const Result<OpSpecPtr> spec = parse_op_spec(stu_json(op, more), "");
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return *spec;
}

}  // namespace hstujit
