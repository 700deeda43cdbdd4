// The code for processors with other registers than this one, against the float64 reference.
#include <gtest/gtest.h>

#include "compiler/host/kernel.h"
#include "tests/host/host_call.h"

namespace hstujit {
namespace {

class RegisterTiles : public ::testing::TestWithParam<RegisterTile> {};

TEST_P(RegisterTiles, AgreeWithTheReference) {
  for (const auto& [attn_dim, hidden_dim] : {std::pair{8, 24}, {72, 40}, {128, 128}}) {
    for (const char* dtype : {"bf16", "fp16", "fp32"}) {
      const OpSpecPtr spec = make_spec({{"op", "hstu_attention"},
                                        {"heads", 2},
                                        {"attn_dim", attn_dim},
                                        {"hidden_dim", hidden_dim},
                                        {"dtype", dtype},
                                        {"num_targets", true},
                                        {"max_attn_len", 90}});
      const auto kernel =
          JitKernel::create(spec, Direction::kForward, 2, kept_objects(*spec, Direction::kForward), GetParam());
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      const Lengths lengths{.rows = {0, 1, 7, 300, 33}, .num_targets = {0, 1, 0, 21, 33}, .max_seq_len = 300};
      HostCall call(spec, lengths, 9);
      call.pack_inputs();
      const Status status = kernel->launch(call.values().data(), call.values().size());
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(call.mistakes(), "") << attn_dim << " " << hidden_dim << " " << dtype;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, RegisterTiles,
                         ::testing::Values(RegisterTile{.lanes = 4, .vectors = 2, .rows = 6},
                                           RegisterTile{.lanes = 4, .vectors = 2, .rows = 12},
                                           RegisterTile{.lanes = 8, .vectors = 2, .rows = 6},
                                           RegisterTile{.lanes = 16, .vectors = 2, .rows = 12}));

}  // namespace
}  // namespace hstujit
