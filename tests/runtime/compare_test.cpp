// Results that count as wrong.
#include <fmt/format.h>
#include <unistd.h>

#include "compiler/spec/config.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

TEST(Compare, FindsWrongRowsMissingRowsAndWritesPastTheEnd) {
  const auto spec = parse_op_spec({{"op", "hstu_attention"}, {"attn_dim", 16}, {"hidden_dim", 16}}, "");
  ASSERT_TRUE(spec.ok());
  Lengths lengths;
  lengths.rows = {40, 1, 9};
  lengths.max_seq_len = 40;
  const auto problem = make_problem_data(*spec, Direction::kForward, lengths, 1, 4);
  ASSERT_TRUE(problem.ok());
  const auto reference = reference_outputs(*problem);
  const size_t out = problem->signature.size() - 1;
  std::vector<std::vector<std::byte>> outputs(problem->signature.size());
  EXPECT_THAT(compare(*problem, reference, problem->images).sentence, HasSubstr("were not written"));
  outputs[out] = pack(reference[out].tensor, DataType::kBf16);
  outputs[out].resize(problem->images[out].size(), std::byte{kPoison});
  EXPECT_EQ(compare(*problem, reference, outputs).sentence, "");
  auto changed = outputs;
  changed[out].back() = std::byte{0};
  EXPECT_THAT(compare(*problem, reference, changed).sentence, HasSubstr("after the last sequence"));
  changed = outputs;
  for (size_t i = 40 * 32; i < 41 * 32; ++i) changed[out][i] = std::byte{0};
  EXPECT_FALSE(compare(*problem, reference, changed).good()) << "one wrong sequence of one row";
}

// Outputs of short sequences under a long max_seq_len lie among the subnormal numbers of fp16, where the nearest value
// is relatively far away.
TEST(Compare, ARoundedAnswerAgreesAlsoNearZero) {
  const auto spec =
      parse_op_spec({{"op", "hstu_attention"}, {"attn_dim", 16}, {"hidden_dim", 16}, {"dtype", "fp16"}}, "");
  ASSERT_TRUE(spec.ok());
  const Lengths lengths{std::vector<int64_t>(64, 1), {}, 131072};
  const auto problem = make_problem_data(*spec, Direction::kForward, lengths, 1, 0);
  ASSERT_TRUE(problem.ok());
  const auto reference = reference_outputs(*problem);
  const size_t out = problem->signature.size() - 1;
  std::vector<std::vector<std::byte>> outputs(problem->signature.size());
  outputs[out] = pack(reference[out].tensor, DataType::kFp16);
  EXPECT_EQ(compare(*problem, reference, outputs).sentence, "");
  EXPECT_LE(compare(*problem, reference, outputs).error, (*spec)->error_bound(Direction::kForward));
  std::fill(outputs[out].begin(), outputs[out].end(), std::byte{0});
  EXPECT_FALSE(compare(*problem, reference, outputs).good()) << "0 is not near enough";
}

TEST(Compare, IntegersAreExact) {
  ProblemData problem;
  problem.spec = *parse_op_spec({{"op", "hstu_attention"}, {"attn_dim", 16}, {"hidden_dim", 16}}, "");
  Argument counts;
  counts.name = "counts";
  counts.role = ArgumentRole::kOutput;
  counts.dtype = DataType::kInt32;
  counts.shape = {Dimension{"N"}};
  problem.signature = {counts};
  HostTensor expected;
  expected.shape = {3};
  expected.integers = {7, -1, 9};
  const std::vector<HostValue> reference = {{expected, 0}};
  EXPECT_EQ(compare(problem, reference, {pack(expected, DataType::kInt32)}).sentence, "");
  HostTensor wrong = expected;
  wrong.integers[2] = 8;
  EXPECT_EQ(compare(problem, reference, {pack(wrong, DataType::kInt32)}).sentence,
            "counts: element 2 is 8; the reference has 9");
}

// A batch is refused before it is made, and so the answer and what is compared with it must be counted, too.
TEST(DrawLengths, ACheckTakesMoreMemoryThanALaunch) {
  constexpr int64_t kWidth = 4096;
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const auto rows = static_cast<int64_t>(memory / 24 / (2 * kWidth));  // of 24 bytes for each element of x and y
  const auto config = parse_config(
      fmt::format(R"([{{"name": "n", "op": "layer_norm", "width": {}, "rows": {}}}])", kWidth, rows), "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const auto drawn = [&](DrawnFor use) { return draw_lengths(config->instances[0], Direction::kForward, rows, use); };
  EXPECT_TRUE(drawn(DrawnFor::kTiming).ok() && drawn(DrawnFor::kRunning).ok());
  EXPECT_EQ(drawn(DrawnFor::kChecking).status().code(), Code::kOutOfMemory);
}

}  // namespace
}  // namespace hstujit::test
