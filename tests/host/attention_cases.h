// Lengths and instances that both directions of hstu_attention are tested with.
#pragma once

#include <algorithm>
#include <vector>

#include "compiler/spec/op_spec.h"
#include "compiler/support/json.h"

namespace hstujit {

using Json = nlohmann::ordered_json;

// Empty, one row, a few, blocks' edges and one long sequence among tiny ones.
inline const std::vector<int64_t> kRows = {0, 1, 5, 2, 600, 0, 33, 16, 257, 3, 64, 1};

inline Lengths adversarial_lengths() {
  Lengths lengths{.rows = kRows, .num_targets = {}, .max_seq_len = 640};
  for (size_t i = 0; i < kRows.size(); ++i)
    lengths.num_targets.push_back(std::min<int64_t>(kRows[i], static_cast<int64_t>(i * 3 % 20)));
  lengths.num_targets[8] = 257;  // nothing but targets
  // None, fewer than none, some, all rows, more than there are.
  lengths.num_contexts = {3, 1, -2, 2, 70, 0, 33, 15, 20, 1000, 0, 7};
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

// What instances of every combination of mask fields change of base_spec(); semi-local and full masks apart.
inline std::vector<Json> mask_combinations() {
  std::vector<Json> combinations;
  for (const bool causal : {true, false}) {
    for (const bool targets : {false, true}) {
      for (const int window : {0, 1, 40}) {
        for (const int context : {0, 7}) {
          const Json changes = {
              {"causal", causal}, {"num_targets", targets}, {"max_attn_len", window}, {"contextual_seq_len", context}};
          combinations.push_back(changes);
          if (window > 0) combinations.push_back(with(changes, {{"min_full_attn_seq_len", 11}}));
          if (targets) combinations.push_back(with(changes, {{"target_group_size", 3}}));
          if (context > 0)
            combinations.push_back(with(combinations.back(), {{"contextual_seq_len", 0}, {"num_contexts", true}}));
        }
      }
    }
  }
  return combinations;
}

inline std::vector<Json> semi_local_and_full_masks() {
  std::vector<Json> masks;
  for (const bool targets : {false, true}) {
    for (const int context : {0, 9}) {
      masks.push_back({{"sla_k1", 21}, {"sla_k2", 6}, {"num_targets", targets}, {"contextual_seq_len", context}});
    }
    masks.push_back({{"sla_k1", 40}, {"num_targets", targets}});
    masks.push_back({{"sla_k1", 21}, {"sla_k2", 6}, {"num_targets", targets}, {"num_contexts", true}});
  }
  masks.push_back({{"causal", false}, {"full_mask", true}});
  masks.push_back({{"attn_func", 1}});
  masks.push_back({{"attn_func", 3}, {"score", "relu"}, {"rab_heads", 2}, {"attn_scale", "rows"}});
  masks.push_back({{"attn_func", 7}, {"attn_func_heads", 2}});
  return masks;
}

}  // namespace hstujit
