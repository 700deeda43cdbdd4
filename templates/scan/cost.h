// How a scan is cut, and how long it should take: host side of scan/forward.
#pragma once

#include <cstdint>

#include "compiler/plan/scan_config.h"
#include "compiler/spec/device_spec.h"

namespace hstujit::scan {

// Chunks of one launch at most: a CTA adds up the sums of those before its own.
inline constexpr int64_t kMaxChunks = 1024;

// Elements that a CTA has at a time.
inline int64_t tile(const ScanConfig& config) { return 32 * config.warps * config.items_per_thread; }

double estimate_ms(const ScanConfig& config, int64_t element_bytes, const DeviceSpec& device);

}  // namespace hstujit::scan
