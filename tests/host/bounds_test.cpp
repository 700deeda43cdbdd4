// Nothing outside the L rows is touched: the tensors of these calls end, or begin, at memory that may not be accessed.
#include <gtest/gtest.h>

#include <limits>

#include "tests/host/guarded_bytes.h"

namespace hstujit {
namespace {

// The tensors of a call: all of these are replaced by guarded memory.
std::vector<std::string> tensors_of(const OpSpec& spec, Direction direction) {
  std::vector<std::string> names;
  for (const Argument& argument : spec.signature(direction)) {
    if (argument.kind == ArgumentKind::kTensor) names.push_back(argument.name);
  }
  return names;
}

constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackward};

TEST(Bounds, EveryTypeAndWidth) {
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    for (const auto& [attn_dim, hidden_dim] : {std::pair{8, 8}, {24, 40}, {64, 64}}) {
      const OpSpecPtr spec = make_spec({{"op", "hstu_attention"},
                                        {"heads", 2},
                                        {"attn_dim", attn_dim},
                                        {"hidden_dim", hidden_dim},
                                        {"dtype", dtype},
                                        {"num_targets", true}});
      for (const Direction direction : kDirections) {
        const HostHandle handle(*spec, 2, direction);
        HostCall call(spec, {.rows = {5, 270, 3}, .num_targets = {1, 2, 0}, .max_seq_len = 270}, 4, 0, direction);
        expect_launch_within_bounds(call, handle, tensors_of(*spec, direction));
      }
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
    for (const Direction direction : kDirections) {
      const HostHandle handle(*spec, 2, direction);
      for (const std::vector<int64_t>& offsets : {std::vector<int64_t>{0, 500, 20, 90},
                                                  {-7, tiny, huge, 3},
                                                  {huge, 0, 0, 0},
                                                  {5, 5, 90, 80},
                                                  {0, 90, 10, 90}}) {
        HostCall call(spec, {.rows = {20, 30, 40}, .num_targets = {0, 0, 0}, .max_seq_len = 64}, 5, 0, direction);
        const auto integers = [&](const char* name) -> std::vector<int64_t>& {
          return call.inputs()[static_cast<size_t>(find_argument(spec->signature(direction), name))].tensor.integers;
        };
        integers("seq_offsets") = offsets;
        integers("num_targets") = {huge, -3, tiny};
        expect_launch_within_bounds(call, handle, tensors_of(*spec, direction));
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
