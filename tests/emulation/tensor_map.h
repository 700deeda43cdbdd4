// What an emulated tensor map holds in place of the driver's encoding.
#pragma once

#include <cstdint>

struct EmulatedTensorMap {
  void* data;
  int64_t columns, heads, rows;
  int64_t head_stride, row_stride;  // elements
  int32_t box_rows;
};
static_assert(sizeof(EmulatedTensorMap) <= 128);
