// The name of what a bench times.
#include "runtime/tuning/workload.h"

#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

TEST(WorkloadName, FollowsFromEveryLength) {
  const Lengths lengths{{5, 9}, {1, 2}, 16};
  EXPECT_THAT(workload_name(lengths), ::testing::StartsWith("b2-n16-r14-t3-"));
  EXPECT_EQ(workload_name(lengths), workload_name({{5, 9}, {1, 2}, 16}));
  for (const Lengths& other : {Lengths{{9, 5}, {1, 2}, 16}, Lengths{{5, 9}, {2, 1}, 16}, Lengths{{5, 9}, {}, 16},
                               Lengths{{5, 9}, {1, 2}, 17}, Lengths{{5, 9, 0}, {1, 2, 0}, 16}}) {
    EXPECT_NE(workload_name(other), workload_name(lengths));
  }
}

}  // namespace
}  // namespace hstujit::test
