// An instance of attention whose emitted kernel runs in emulation, against the float64 reference; the masks and lengths
// that all templates are asked for.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/search_space.h"
#include "tests/emulation/emulated_kernel.h"
#include "tests/host/guarded_bytes.h"
#include "tests/host/host_call.h"

namespace hstujit {

using Json = nlohmann::ordered_json;

inline Json base() { return {{"op", "hstu_attention"}, {"heads", 2}, {"attn_dim", 32}, {"hidden_dim", 32}}; }

// Tiles compute a score's functions accurately unless a test changes that.
inline KernelConfig ampere_tile(int64_t block_m, int64_t warps, int64_t block_n, int64_t stages) {
  KernelConfig config;
  config.attention().activation = "accurate";
  config.attention().block_m = block_m;
  config.attention().block_n = block_n;
  config.attention().stages = stages;
  config.attention().warps = warps;
  return config;
}

// One CTA for all tiles of a sequence and head.
inline KernelConfig per_sequence(KernelConfig config) {
  config.attention().schedule = "per_sequence";
  return config;
}

// `skeleton` of the attention family.
inline KernelConfig hopper_tile(std::string_view skeleton, int64_t consumers, int64_t block_n, int64_t stages,
                                const char* schedule = "grid", int64_t blocks_per_sm = 1) {
  KernelConfig config;
  config.attention().activation = "accurate";
  config.skeleton = fmt::format("attention/{}", skeleton);
  config.attention().block_m = 64 * consumers;
  config.attention().block_n = block_n;
  config.attention().stages = stages;
  config.attention().consumers = consumers;
  config.attention().schedule = schedule;
  config.attention().blocks_per_sm = blocks_per_sm;
  return config;
}

inline Json with(Json json, const Json& changes) {
  json.update(changes);
  return json;
}

inline const std::vector<Json>& mask_changes() {
  static const std::vector<Json> masks = {{{"num_targets", true}},
                                          {{"num_targets", true}, {"target_group_size", 3}},
                                          {{"num_targets", true}, {"contextual_seq_len", 6}, {"score", "relu"}},
                                          {{"max_attn_len", 20}, {"min_full_attn_seq_len", 5}},
                                          {{"causal", false}, {"max_attn_len", 9}, {"score", "gelu"}},
                                          {{"sla_k1", 12}, {"sla_k2", 3}, {"num_targets", true}, {"score", "sigmoid"}},
                                          {{"full_mask", true}, {"score", "tanh"}}};
  return masks;
}

// Tiles of 64 and 128 rows, one more or less.
inline Lengths hopper_lengths(bool targets) {
  Lengths lengths{.rows = {1, 65, 0, 200, 64, 127, 129}, .num_targets = {}, .max_seq_len = 200};
  if (targets) lengths.num_targets = {1, 5, 0, 20, 64, 0, 70};
  return lengths;
}

class Case {
 public:
  // A config without a skeleton is one of Ampere's; without warps besides, it stands for the heuristic's choice there.
  // `cluster`: blocks of each.
  Case(const Json& json, Direction direction, KernelConfig config, const Lengths& lengths, unsigned cluster = 1)
      : spec_(make_spec(json)), direction_(direction), lengths_(lengths), cluster_(cluster) {
    if (config.skeleton.empty() && config.attention().warps == 0) {
      config = heuristic_config(*spec_, direction, *known_device("sm_80"), {.max_seq_len = 1024}).value();
    } else if (config.skeleton.empty()) {
      config.skeleton = direction == Direction::kForward ? "attention/sm80_forward" : "attention/sm80_backward";
    }
    auto emitted = emit_kernel(*spec_, direction, config, *known_device("sm_90a"));
    // The forward template refuses fewer blocks of a multiprocessor than cost nothing.
    for (; !emitted.ok() && config.attention().blocks_per_sm < AttentionConfig::kMaxBlocksPerSm;
         ++config.attention().blocks_per_sm) {
      emitted = emit_kernel(*spec_, direction, config, *known_device("sm_90a"));
    }
    if (!emitted.ok()) throw std::runtime_error(emitted.status().message());
    deterministic_ = (*find_skeleton(config.skeleton))->deterministic(config);
    kernel_ = std::make_unique<EmulatedKernel>(*emitted);
    for (const Argument& argument : spec_->signature(direction)) {
      if (argument.role == ArgumentRole::kOutput) outputs_.push_back(argument.name);
    }
  }

  const OpSpecPtr& spec() const { return spec_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  HostCall call(int64_t row_padding = 0) const { return HostCall(spec_, lengths_, 7, row_padding, direction_); }
  void launch(HostCall& call, unsigned seed) const {
    call.pack_inputs();
    launch_packed(call, seed);
  }
  void launch_packed(HostCall& call, unsigned seed) const { kernel_->launch(call.values(), seed, cluster_); }

  // Against the reference, with guard rows and gaps between rows, and twice in different orders, which give the same
  // bits where the kernel promises it.
  void check() const {
    HostCall call = this->call(/*row_padding=*/16);
    call.add_rows(3);
    HostCall again = call;
    launch(call, 1);
    launch(again, 2);
    EXPECT_EQ(call.mistakes(), "");
    if (!deterministic_) {
      EXPECT_EQ(again.mistakes(), "");
    }
    for (const std::string& name : outputs_) {
      if (deterministic_) {
        EXPECT_EQ(call.bytes(name), again.bytes(name)) << name;
      }
      expect_untouched(call, name);
    }
  }

 private:
  static void expect_untouched(const HostCall& call, const std::string& name) {
    const std::vector<std::byte>& bytes = call.bytes(name);
    const std::vector<bool> used = call.used_bytes(name);
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (used[i]) continue;
      ASSERT_EQ(bytes[i], HostCall::kUntouched) << name << " " << i;
    }
  }

  OpSpecPtr spec_;
  Direction direction_;
  Lengths lengths_;
  unsigned cluster_;
  bool deterministic_ = true;
  std::unique_ptr<EmulatedKernel> kernel_;
  std::vector<std::string> outputs_;
};

inline std::vector<std::string> tensor_names(const Signature& signature) {
  std::vector<std::string> names;
  for (const Argument& argument : signature) {
    if (argument.kind == ArgumentKind::kTensor) names.push_back(argument.name);
  }
  return names;
}

// Values of an input of integers.
inline std::vector<int64_t>& integers_of(HostCall& call, const Signature& signature, const char* name) {
  return call.inputs()[static_cast<size_t>(find_argument(signature, name))].tensor.integers;
}

// Offsets that decrease or pass the end, and numbers of targets that no sequence has, lead to no address outside of the
// tensors: these end, or begin, at memory that may not be accessed.
inline void check_that_senseless_indices_stay_in_bounds(Direction direction, const KernelConfig& config,
                                                        unsigned cluster = 1, const Json& changes = Json::object()) {
  const int64_t huge = std::numeric_limits<int64_t>::max(), tiny = std::numeric_limits<int64_t>::min();
  const Json json =
      with(with(base(), {{"num_targets", true}, {"contextual_seq_len", 4}, {"max_attn_len", 9}}), changes);
  const Case kernel(json, direction, config, {.rows = {20, 30, 40}, .num_targets = {0, 0, 0}, .max_seq_len = 64},
                    cluster);
  const Signature signature = kernel.spec()->signature(direction);
  for (const std::vector<int64_t>& offsets :
       {std::vector<int64_t>{0, 500, 20, 90}, {-7, tiny, huge, 3}, {huge, 0, 0, 0}, {5, 5, 90, 80}, {0, 90, 10, 90}}) {
    HostCall call = kernel.call();
    integers_of(call, signature, "seq_offsets") = offsets;
    integers_of(call, signature, "num_targets") = {huge, -3, tiny};
    expect_within_bounds(call, tensor_names(signature), [&](HostCall& ready) { kernel.launch_packed(ready, 1); });
  }
}

// A NaN in one row of k reaches what sees that row, whatever the score, and nothing that masks it.
inline void check_that_scores_keep_nan(Direction direction, const KernelConfig& config) {
  constexpr size_t kWidth = 2 * 32, kBad = 40;
  const Lengths lengths{.rows = {70}, .num_targets = {}, .max_seq_len = 70};
  for (const char* score : {"silu", "relu", "relu2"}) {
    const Case kernel(with(base(), {{"score", score}}), direction, config, lengths);
    HostCall call = kernel.call();
    std::vector<double>& k = call.inputs()[1].tensor.reals;
    std::fill_n(k.begin() + kBad * kWidth, kWidth, std::numeric_limits<double>::quiet_NaN());
    kernel.launch(call, 1);
    const bool forward = direction == Direction::kForward;
    const HostTensor out = call.read(forward ? "out" : "dv");
    for (size_t i = 0; i < out.reals.size(); ++i) {
      const size_t row = i / kWidth;
      ASSERT_EQ(std::isnan(out.reals[i]), forward ? row >= kBad : row == kBad) << score << " " << i;
    }
  }
}

// NaN in one sequence's operands leave the gradients of all others as they are, those of rows.
inline void check_that_numbers_stay_in_their_sequence(const KernelConfig& config,
                                                      const Json& changes = Json::object()) {
  constexpr int64_t kWidth = 2 * 32, kBegin = 1, kEnd = 34;  // rows of the second sequence
  const Case kernel(with(base(), changes), Direction::kBackward, config,
                    {.rows = {1, 33, 0, 70, 16, 31}, .num_targets = {}, .max_seq_len = 70});
  HostCall clean = kernel.call(), dirty = kernel.call();
  for (size_t tensor = 0; tensor < 4; ++tensor) {  // q, k, v, dout
    std::vector<double>& reals = dirty.inputs()[tensor].tensor.reals;
    std::fill(reals.begin() + kBegin * kWidth, reals.begin() + kEnd * kWidth, std::numeric_limits<double>::quiet_NaN());
  }
  kernel.launch(clean, 1);
  kernel.launch(dirty, 1);
  for (const std::string name : {"dq", "dk", "dv"}) {
    const HostTensor a = clean.read(name), b = dirty.read(name);
    for (size_t i = 0; i < a.reals.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / kWidth;
      if (row >= kBegin && row < kEnd) {
        ASSERT_TRUE(std::isnan(b.reals[i])) << name << " " << i;
      } else {
        ASSERT_EQ(a.reals[i], b.reals[i]) << name << " " << i;
      }
    }
  }
}

}  // namespace hstujit
