// Every config of the scan compiles without spills, and the source has nothing that it does not use.
#include "compiler/plan/search_space.h"
#include "tests/nvrtc/compiled_kernels.h"

namespace hstujit {
namespace {

class ScanKernels : public CompiledKernels {};

TEST_F(ScanKernels, EveryConfigFits) {
  const DeviceSpec device = *known_device("sm_90a");
  for (const char* dtype : {"int32", "int64"}) {
    const OpSpecPtr spec = *parse_op_spec({{"op", "complete_cumsum"}, {"dtype", dtype}}, "");
    const SearchSpace space = search_space(*spec, Direction::kForward, device, {});
    EXPECT_EQ(space.candidates.size(), 9u);
    for (const Candidate& candidate : space.candidates)
      expect_fits(*spec, Direction::kForward, candidate.config, device);
  }
}

}  // namespace
}  // namespace hstujit
