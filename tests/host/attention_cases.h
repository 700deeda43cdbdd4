// Lengths and instances that both directions of hstu_attention are tested with.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "compiler/spec/op_spec.h"

namespace hstujit {

using Json = nlohmann::ordered_json;

// Empty, one row, a few, blocks' edges and one long sequence among tiny ones.
inline const std::vector<int64_t> kRows = {0, 1, 5, 2, 600, 0, 33, 16, 257, 3, 64, 1};

inline Lengths adversarial_lengths() {
  Lengths lengths{.rows = kRows, .num_targets = {}, .max_seq_len = 640};
  for (size_t i = 0; i < kRows.size(); ++i)
    lengths.num_targets.push_back(std::min<int64_t>(kRows[i], static_cast<int64_t>(i * 3 % 20)));
  lengths.num_targets[8] = 257;  // nothing but targets
  return lengths;
}

inline Json base_spec() {
  return {{"op", "hstu_attention"}, {"heads", 2},      {"attn_dim", 32},
          {"hidden_dim", 32},       {"dtype", "fp32"}, {"precision", "ieee"}};
}

inline Json with(Json json, const Json& changes) {
  json.update(changes);
  return json;
}

}  // namespace hstujit
