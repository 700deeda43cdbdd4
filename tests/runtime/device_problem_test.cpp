// Problems in device memory, over a driver whose memory is the host's.
#include "operations/tuning/data/device_problem.h"

#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

// A few sequences are drawn for timing; on the device their rows come again and again, to the last byte.
TEST_F(RuntimeTest, TimingDataIsRepeatedOnTheDevice) {
  const auto spec = parse_op_spec({{"op", "layer_norm"}, {"width", 1000}, {"dtype", "fp16"}}, "");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const Lengths lengths{{10007}, {}, 10007};
  const auto timed = make_timing_data(*spec, Direction::kForward, lengths, 1);
  ASSERT_TRUE(timed.ok()) << timed.status().message();
  const auto driver = make_engine()->driver();
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  const auto problem = DeviceProblem::upload(*driver, *timed, 0);
  ASSERT_TRUE(problem.ok()) << problem.status().message();

  const auto x = static_cast<size_t>(find_argument(timed->signature, "x"));
  const std::vector<std::byte>& drawn = timed->images.at(x);
  EXPECT_EQ(timed->sizes.at(x), size_t{10007} * 1000 * 2);
  ASSERT_EQ(drawn.size(), (size_t{1} << 22) / 1000 * 1000 * 2);
  const auto bytes = problem->download(x);
  ASSERT_TRUE(bytes.ok());
  ASSERT_EQ(bytes->size(), timed->sizes.at(x));
  size_t different = 0;
  for (size_t i = 0; i < bytes->size(); ++i) different += (*bytes)[i] == drawn[i % drawn.size()] ? 0 : 1;
  EXPECT_EQ(different, 0U);

  const auto outputs = problem->download_outputs();
  ASSERT_TRUE(outputs.ok());
  const auto out = static_cast<size_t>(find_argument(timed->signature, "out"));
  const auto poison = std::count(outputs->at(out).begin(), outputs->at(out).end(), std::byte{kPoison});
  EXPECT_EQ(static_cast<size_t>(poison), timed->sizes.at(x));
}

}  // namespace
}  // namespace hstujit::test
