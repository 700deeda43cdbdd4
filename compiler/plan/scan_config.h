// Parameters of the scan family's skeleton that the tuner varies.
#pragma once

#include <cstdint>

#include "compiler/spec/family.h"
#include "compiler/spec/fields.h"

namespace hstujit {

struct ScanConfig {
  static constexpr Family kFamily = Family::kScan;

  int64_t warps = 8;             // of a CTA
  int64_t items_per_thread = 8;  // elements of a tile; a CTA has a tile at a time

  bool operator==(const ScanConfig&) const = default;

  static constexpr auto fields() {
    using C = ScanConfig;
    return std::make_tuple(field("warps", &C::warps, "warps of a CTA", 1, 32),
                           field("items_per_thread", &C::items_per_thread, "elements of a thread at a time", 1, 16));
  }
};

}  // namespace hstujit
