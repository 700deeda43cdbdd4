// Contents of an emulated tensor map in place of the driver's encoding. One of a matrix has one head.
#pragma once

#include <cstdint>

struct EmulatedTensorMap {
  void* data;
  int64_t columns, heads, rows;
  int64_t head_stride, row_stride;  // elements
  int32_t box_heads, box_rows;
};
static_assert(sizeof(EmulatedTensorMap) <= 128);
