// Resources of one CTA of the kernel of row_statistics.cuh, in front of sm90_backward_fused: its tile, shared memory
// and registers. The device struct is `sm90::backward::Shared`; the template asserts that it fits.
#pragma once

#include <cstdint>

#include "compiler/spec/fields.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm90::backward {

struct RowStatisticsResources {
  explicit RowStatisticsResources(const AttentionSpec& spec);

  int64_t rows() const { return 64 * consumers; }  // of the CTA's tile
  int64_t threads() const { return 128 * (consumers + 1); }

  static constexpr int64_t kColumns = 64;  // of a KV tile

  int64_t consumers = 0;  // warpgroups
  int64_t stages = 0;     // KV tiles on their way
  int64_t shared_bytes = 0;
  int64_t producer_registers = 56;  // per thread, after setmaxnreg
  int64_t consumer_registers = 0;

  // Fields that the source has as constants.
  static constexpr auto fields() {
    using R = RowStatisticsResources;
    return std::make_tuple(field("statistics_consumers", &R::consumers, ""), field("statistics_stages", &R::stages, ""),
                           field("statistics_shared_bytes", &R::shared_bytes, ""),
                           field("statistics_producer_registers", &R::producer_registers, ""),
                           field("statistics_consumer_registers", &R::consumer_registers, ""));
  }
};

}  // namespace hstujit::sm90::backward
