// Kernels of the row family compile without spills: those that run untuned, and of one problem all that may be tuned.
#include "compiler/plan/search_space.h"
#include "compiler/spec/operators/hstu_norm_mul_dropout/spec.h"
#include "compiler/spec/operators/layer_norm/spec.h"
#include "tests/nvrtc/compiled_kernels.h"
#include "tests/row/row_cases.h"

namespace hstujit {
namespace {

constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackward};

class RowKernels : public CompiledKernels {
 protected:
  void expect_untuned_fits(const OpSpec& spec) {
    const DeviceSpec device = *known_device("sm_90a");
    for (const Direction direction : kDirections)
      expect_fits(spec, direction, heuristic_config(spec, direction, device, {}).value(), device);
  }
};

LayerNormSpec layer_norm(int64_t width, DataType dtype) {
  LayerNormParams params;
  params.width = width;
  params.dtype = dtype;
  make_canonical(params, true);
  return LayerNormSpec(params);
}

TEST_F(RowKernels, UntunedFitEveryWidth) {
  for (const int64_t width : {1, 7, 100, 256, 512, 1000, 1024, 4096, 8192}) {
    for (const DataType dtype : {DataType::kBf16, DataType::kFp32}) expect_untuned_fits(layer_norm(width, dtype));
  }
  expect_untuned_fits(layer_norm(RowParams::kMaxWidth, DataType::kBf16));
  // Kernels of rows that stay in shared memory.
  for (const int64_t width : {6144, 8192, 12288}) {
    for (const char* op : {"swish_layer_norm", "hstu_norm_mul_dropout"})
      expect_untuned_fits(**parse_op_spec({{"op", op}, {"width", width}}, ""));
  }
}

TEST_F(RowKernels, UntunedFitEveryOption) {
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    for (const RowCase& row : row_cases({{"width", 512}, {"dtype", dtype}, {"weight_dtype", dtype}}))
      expect_untuned_fits(*row.spec);
  }
}

TEST_F(RowKernels, UntunedFitEveryOptionOverSequences) {
  const DeviceSpec device = *known_device("sm_90a");
  for (const char* dtype : {"bf16", "fp32"}) {
    for (const RowCase& row : sequence_cases({{"width", 512}, {"dtype", dtype}})) {
      for (const Direction direction : kDirections) {
        if (!row.spec->supports(direction) || row.spec->program(direction) != nullptr) continue;
        expect_fits(*row.spec, direction, heuristic_config(*row.spec, direction, device, {}).value(), device);
      }
    }
  }
}

// Heads of usual widths, and such as no power of two divides, with all that an operator may have.
TEST_F(RowKernels, UntunedFitEveryGroup) {
  for (const auto& [heads, head_width] : {std::pair{1, 256}, {4, 128}, {8, 32}, {4, 256}, {3, 96}, {16, 128}}) {
    HstuNormMulDropoutParams params;
    params.width = heads * head_width;
    params.heads = heads;
    params.group_norm = params.concat_u = params.concat_x = params.dropout = true;
    make_canonical(params, true);
    expect_untuned_fits(HstuNormMulDropoutSpec(params));
  }
}

TEST_F(RowKernels, EveryConfigFits) {
  const DeviceSpec device = *known_device("sm_90a");
  const LayerNormSpec spec = layer_norm(512, DataType::kBf16);
  for (const Direction direction : kDirections) {
    for (const Candidate& candidate : search_space(spec, direction, device, {}).candidates)
      expect_fits(spec, direction, candidate.config, device);
  }
}

}  // namespace
}  // namespace hstujit
