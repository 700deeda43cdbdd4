// Helpers of the tests of hstu_attention's skeletons.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/short_sequences.h"

namespace hstujit {

// The configs of its space that it accepts.
inline std::vector<KernelConfig> accepted_of(const Skeleton& skeleton, const OpSpec& spec, const DeviceSpec& on) {
  std::vector<KernelConfig> configs;
  for (const KernelConfig& config : skeleton.space(spec)) {
    if (skeleton.reject(spec, config, on).empty()) configs.push_back(config);
  }
  return configs;
}

// Names of its reasons against a config.
inline std::vector<std::string> reasons_of(const Skeleton& skeleton, const OpSpec& spec, const KernelConfig& config,
                                           const DeviceSpec& on) {
  std::vector<std::string> names;
  for (const Rejection& rejection : skeleton.reject(spec, config, on)) names.push_back(rejection.reason);
  return names;
}

inline int64_t constant_of(const Skeleton& skeleton, const OpSpec& spec, const KernelConfig& config,
                           std::string_view name) {
  for (const auto& [key, value] : skeleton.constants(spec, config)) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no constant " << name;
  return -1;
}

// The head dimensions (attention, hidden) of tests/gpu/matrix_attention.py.
inline const std::vector<std::pair<int64_t, int64_t>> kMatrixDimensions = {
    {32, 32}, {40, 40}, {64, 64}, {96, 96}, {128, 128}, {192, 192}, {256, 256}, {64, 128}, {128, 64}, {256, 128}};

inline HstuAttentionParams make_params(DataType dtype, int64_t attn_dim, int64_t hidden_dim) {
  HstuAttentionParams params;
  params.heads = 4;
  params.attn_dim = attn_dim;
  params.hidden_dim = hidden_dim;
  params.dtype = dtype;
  return params;
}

// Both 16-bit types of every pair of head dimensions.
inline std::vector<HstuAttentionSpec> matrix_specs() {
  std::vector<HstuAttentionSpec> specs;
  for (const auto& [attn_dim, hidden_dim] : kMatrixDimensions) {
    for (const DataType dtype : {DataType::kBf16, DataType::kFp16})
      specs.emplace_back(make_params(dtype, attn_dim, hidden_dim));
  }
  return specs;
}

// Size that the cost model assumes for a bucket's batches of short sequences.
inline ProblemSize size_of_short(int64_t bucket) {
  constexpr size_t kLengths = 24;
  ProblemSize size{bucket, kShortBatch};
  size.lengths = typical_short_lengths(bucket, kLengths);
  const auto rows = static_cast<double>(std::accumulate(size.lengths.begin(), size.lengths.end(), int64_t{0}));
  size.mean_fill = rows / static_cast<double>(kLengths) / static_cast<double>(bucket);
  return size;
}

}  // namespace hstujit
