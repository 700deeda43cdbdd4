// How long a config of the row kernels should take.
#pragma once

#include "compiler/plan/row_config.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/row_spec.h"

namespace hstujit::row {

double estimate_ms(const RowSpec& spec, Direction direction, const RowConfig& config, const DeviceSpec& device);

// Estimates the backward direction with sums of tables, in the order of a sort.
double estimate_table_sums_ms(const RowSpec& spec, const RowConfig& config, const DeviceSpec& device);
double estimate_segment_sums_ms(const RowSpec& spec, const RowConfig& config, const DeviceSpec& device);
// The same in one pass, by atomic additions; a thread has so many elements of a row.
double estimate_atomic_table_sums_ms(const RowSpec& spec, const RowConfig& config, int64_t elements,
                                     const DeviceSpec& device);

}  // namespace hstujit::row
