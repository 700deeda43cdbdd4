// The name of what a bench times.
#include "operations/tuning/data/workload.h"

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

// Records are kept by the name: that of a batch with rows of q of all rows is what it has always been.
TEST(WorkloadName, SaysRowsOfQWhereTheyAreNotAll) {
  Lengths lengths{{5, 9}, {1, 2}, 16};
  EXPECT_EQ(workload_name(lengths), "b2-n16-r14-t3-99af1b58ec3a8133");
  const std::string all = workload_name(lengths);
  lengths.other_rows["Lq"] = {3, 4};
  EXPECT_THAT(workload_name(lengths), ::testing::StartsWith("b2-n16-r14-t3-q7-"));
  Lengths other = lengths;
  other.other_rows["Lq"] = {4, 3};
  EXPECT_NE(workload_name(other), workload_name(lengths));
  EXPECT_NE(workload_name(lengths).substr(workload_name(lengths).size() - 16), all.substr(all.size() - 16));
}

}  // namespace
}  // namespace hstujit::test
