// Mask and score instances of hstu_attention that the tests of IR, passes and emission share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/passes/passes.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/support/text.h"

namespace hstujit {

inline HstuAttentionParams attention_params() {
  HstuAttentionParams params;
  params.heads = 2;
  params.attn_dim = 64;
  params.hidden_dim = 64;
  return params;
}

inline std::string describe(const HstuAttentionParams& p) {
  return "causal " + std::to_string(p.causal) + ", num_targets " + std::to_string(p.num_targets) +
         ", target_group_size " + std::to_string(p.target_group_size) + ", max_attn_len " +
         std::to_string(p.max_attn_len) + ", min_full_attn_seq_len " + std::to_string(p.min_full_attn_seq_len) +
         ", contextual_seq_len " + std::to_string(p.contextual_seq_len) + ", sla_k1 " + std::to_string(p.sla_k1) +
         ", sla_k2 " + std::to_string(p.sla_k2) + ", full_mask " + std::to_string(p.full_mask);
}

// Every combination of flags, each number absent or present with a size that tells differences apart for sequences of
// 20 rows.
inline std::vector<HstuAttentionParams> all_masks() {
  std::vector<HstuAttentionParams> masks;
  for (const bool causal : {true, false}) {
    for (const int64_t context : {0, 1, 3}) {
      for (const int64_t group : {0, 1, 3}) {  // 0: no targets
        for (const auto& [window, full] :
             {std::pair{0, 0}, std::pair{1, 0}, std::pair{4, 0}, std::pair{4, 2}, std::pair{0, 3}}) {
          for (const auto& [k1, k2] : {std::pair{0, 0}, std::pair{3, 0}, std::pair{0, 5}, std::pair{3, 5}}) {
            HstuAttentionParams p = attention_params();
            p.causal = causal;
            p.contextual_seq_len = context;
            p.num_targets = group > 0;
            p.target_group_size = std::max<int64_t>(group, 1);
            p.max_attn_len = window;
            p.min_full_attn_seq_len = full;
            p.sla_k1 = k1;
            p.sla_k2 = k2;
            masks.push_back(p);
          }
        }
      }
    }
  }
  HstuAttentionParams full = attention_params();
  full.full_mask = true;
  masks.push_back(full);
  return masks;
}

// Instances as models have them, for golden files.
inline std::vector<std::pair<std::string, HstuAttentionParams>> named_cases() {
  const auto with = [](auto change) {
    HstuAttentionParams params = attention_params();
    change(params);
    return params;
  };
  return {
      {"causal", attention_params()},
      {"targets", with([](auto& p) { p.num_targets = true; })},
      {"target_groups", with([](auto& p) { p.num_targets = true, p.target_group_size = 4; })},
      {"window", with([](auto& p) { p.max_attn_len = 256, p.min_full_attn_seq_len = 64; })},
      {"contextual_targets_relu",
       with([](auto& p) { p.num_targets = true, p.contextual_seq_len = 6, p.score = "relu"; })},
      {"bidirectional_window_gelu", with([](auto& p) { p.causal = false, p.max_attn_len = 128, p.score = "gelu"; })},
      {"semi_local_sigmoid",
       with([](auto& p) { p.num_targets = true, p.sla_k1 = 128, p.sla_k2 = 16, p.score = "sigmoid"; })},
      {"full_relu2", with([](auto& p) { p.full_mask = true, p.score = "relu2"; })},
      {"full_tanh", with([](auto& p) { p.full_mask = true, p.score = "tanh"; })}};
}

inline const std::vector<std::string>& all_scores() {
  static const std::vector<std::string> scores = split(kHstuScores, ' ');
  return scores;
}

// The region functions of one instance, with the context that owns them.
struct Regions {
  std::unique_ptr<mlir::MLIRContext> context = make_context();
  Module module;
  mlir::func::FuncOp function(llvm::StringRef name) { return module->lookupSymbol<mlir::func::FuncOp>(name); }
};

inline Regions build_regions(const HstuAttentionParams& params) {
  Regions regions;
  auto module = build_module(*regions.context, HstuAttentionSpec(params));
  EXPECT_TRUE(module.ok()) << module.status().message();
  regions.module = std::move(*module);
  const Status status = run_passes(*regions.module);
  EXPECT_TRUE(status.ok()) << status.message();
  return regions;
}

}  // namespace hstujit
