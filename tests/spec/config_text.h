// Texts of configs, and what is wrong with them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "compiler/spec/config.h"

namespace hstujit {

// A config of one instance, with `fields` added to it.
inline std::string one_config(const std::string& fields) {
  return R"({"version": 1, "ops": [{"name": "a", "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64, )" + fields +
         "}]}";
}

// A config of one instance of delta_hstu_attention with sequences of 5, 0 and 9 rows.
inline std::string one_delta(const std::string& fields) {
  return R"({"version": 1, "ops": [{"name": "a", "op": "delta_hstu_attention", "attn_dim": 64, "hidden_dim": 64,
             "max_seq_len": 8, "lengths": [5, 0, 9], )" +
         fields + "}]}";
}

inline Status config_status(const std::string& text) { return parse_config(text, "model.json", "").status(); }

inline std::string config_error(const std::string& text) {
  const Status status = config_status(text);
  EXPECT_FALSE(status.ok()) << text;
  EXPECT_EQ(status.code(), Code::kInvalidConfig) << status.message();
  return status.message();
}

}  // namespace hstujit
