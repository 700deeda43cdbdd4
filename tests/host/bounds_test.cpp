// Nothing outside the L rows is touched: the tensors of these calls end, or begin, at memory that may not be accessed.
#include <gtest/gtest.h>

#include <limits>

#include "tests/host/guarded_bytes.h"

namespace hstujit {
namespace {

const std::vector<std::string> kTensors = {"q", "k", "v", "seq_offsets", "num_targets", "out"};

TEST(Bounds, EveryTypeAndWidth) {
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    for (const auto& [attn_dim, hidden_dim] : {std::pair{8, 8}, {24, 40}, {64, 64}}) {
      const OpSpecPtr spec = make_spec({{"op", "hstu_attention"},
                                        {"heads", 2},
                                        {"attn_dim", attn_dim},
                                        {"hidden_dim", hidden_dim},
                                        {"dtype", dtype},
                                        {"num_targets", true}});
      const HostHandle handle(*spec, 2);
      HostCall call(spec, {.rows = {5, 270, 3}, .num_targets = {1, 2, 0}, .max_seq_len = 270}, 4);
      expect_launch_within_bounds(call, handle, kTensors);
    }
  }
}

TEST(Bounds, SenselessIndices) {
  const int64_t huge = std::numeric_limits<int64_t>::max(), tiny = std::numeric_limits<int64_t>::min();
  for (const int context : {0, 4}) {
    const OpSpecPtr spec = make_spec({{"op", "hstu_attention"},
                                      {"heads", 1},
                                      {"attn_dim", 32},
                                      {"hidden_dim", 32},
                                      {"dtype", "fp32"},
                                      {"num_targets", true},
                                      {"contextual_seq_len", context},
                                      {"max_attn_len", 9}});
    const HostHandle handle(*spec, 2);
    for (const std::vector<int64_t>& offsets : {std::vector<int64_t>{0, 500, 20, 90},
                                                {-7, tiny, huge, 3},
                                                {huge, 0, 0, 0},
                                                {5, 5, 90, 80},
                                                {0, 90, 10, 90}}) {
      HostCall call(spec, {.rows = {20, 30, 40}, .num_targets = {0, 0, 0}, .max_seq_len = 64}, 5);
      call.inputs()[3].tensor.integers = offsets;
      call.inputs()[4].tensor.integers = {huge, -3, tiny};
      expect_launch_within_bounds(call, handle, kTensors);
    }
  }
}

}  // namespace
}  // namespace hstujit
