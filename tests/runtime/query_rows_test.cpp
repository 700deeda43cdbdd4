// Generated inputs, comparison and data checks where q and out hold only the last rows of each sequence.
#include "operations/tuning/data/strided_data.h"
#include "runtime/launch/data_checks.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;
using Rows = std::vector<int64_t>;

OpSpecPtr delta_spec(bool jagged_queries) {
  return *parse_op_spec({{"op", "delta_hstu_attention"},
                         {"heads", 2},
                         {"attn_dim", 16},
                         {"hidden_dim", 8},
                         {"num_targets", true},
                         {"jagged_queries", jagged_queries}},
                        "");
}

// The last of these has fewer rows than q has of it.
Lengths some_lengths(bool jagged_queries) {
  return {{40, 0, 5}, {1, 0, 2}, 40, {{"Lq", jagged_queries ? Rows{3, 0, 7} : Rows{7, 7, 7}}}};
}

size_t at(const ProblemData& problem, std::string_view name) {
  return static_cast<size_t>(find_argument(problem.signature, name));
}

TEST(QueryRows, OnlyJaggedAxesGetExtraRows) {
  const ProblemData jagged = *make_problem_data(delta_spec(true), Direction::kForward, some_lengths(true), 1, 4);
  EXPECT_EQ(jagged.shapes[at(jagged, "q")], (Rows{10 + 4, 2, 16}));
  EXPECT_EQ(jagged.shapes[at(jagged, "k")], (Rows{45 + 4, 2, 16}));
  EXPECT_EQ(jagged.shapes[at(jagged, "out")], (Rows{10 + 4, 2, 8}));
  const ProblemData dense = *make_problem_data(delta_spec(false), Direction::kForward, some_lengths(false), 1, 4);
  EXPECT_EQ(dense.shapes[at(dense, "q")], (Rows{21, 2, 16}));
  EXPECT_EQ(dense.shapes[at(dense, "k")], (Rows{45 + 4, 2, 16}));
  EXPECT_EQ(dense.shapes[at(dense, "out")], (Rows{21, 2, 8}));
  EXPECT_EQ(dense.images[at(dense, "out")].size(), 21u * 2 * 8 * 2);
}

TEST(QueryRows, LengthsThatDoNotFitTheOperatorAreInternal) {
  Lengths lengths = some_lengths(false);
  lengths.other_rows["Lq"][1] = 6;
  const auto mixed = make_problem_data(delta_spec(false), Direction::kForward, lengths, 1, 0);
  EXPECT_EQ(mixed.status().code(), Code::kInternal);
  EXPECT_EQ(mixed.status().message(),
            "the input q of delta_hstu_attention has shape (20, 2, 16); it must be (21, 2, 16)");
  lengths.other_rows.clear();
  EXPECT_EQ(make_problem_data(delta_spec(true), Direction::kForward, lengths, 1, 0).status().code(), Code::kInternal);
}

TEST(QueryRows, GeneratedLaunchesPassTheCheck) {
  for (const bool jagged : {false, true}) {
    const ProblemData problem = *make_problem_data(delta_spec(jagged), Direction::kForward, some_lengths(jagged), 1, 3);
    const ArgumentChecker checker = ArgumentChecker::create(problem.signature).value();
    for (const ProblemData& data : {problem, spread(problem)}) {
      std::vector<std::vector<std::byte>> memory = data.images;
      std::vector<void*> addresses;
      for (auto& image : memory) addresses.push_back(image.data());
      const LaunchValues launch(data, addresses, {kDLCPU, 0});
      bool nothing = false;
      const ArgumentFailure failure = checker.check(launch.values(), launch.count(), {false, 0}, &nothing);
      EXPECT_EQ(checker.explain(failure, launch.values(), {false, 0}).message(), "") << jagged;
    }
  }
}

TEST(QueryRows, EachSequenceIsComparedAlongTheAxisOfTheOutput) {
  for (const bool jagged : {false, true}) {
    // One row of q belongs to a sequence of few pairs, so that its part in the whole is small.
    const Lengths lengths{{300, 1, 300}, {0, 0, 0}, 300, {{"Lq", jagged ? Rows{200, 1, 200} : Rows{2, 2, 2}}}};
    const ProblemData problem = *make_problem_data(delta_spec(jagged), Direction::kForward, lengths, 1, 2);
    const auto reference = reference_outputs(problem);
    const size_t out = at(problem, "out");
    std::vector<std::vector<std::byte>> outputs(problem.signature.size());
    outputs[out] = pack(reference[out].tensor, DataType::kBf16);
    outputs[out].resize(problem.images[out].size(), std::byte{kPoison});
    EXPECT_EQ(compare(problem, reference, outputs).sentence, "");
    const size_t row = 2 * 8 * 2, only = jagged ? 200 : 3;  // in a dense q the row before it lies before the sequence
    std::fill_n(outputs[out].begin() + static_cast<std::ptrdiff_t>(only * row), row, std::byte{0});
    EXPECT_THAT(compare(problem, reference, outputs).sentence,
                HasSubstr(jagged ? "out: sequence 1 of 1 row differs" : "out: sequence 1 of 2 rows differs"));
    if (!jagged) continue;
    outputs[out] = pack(reference[out].tensor, DataType::kBf16);
    outputs[out].resize(problem.images[out].size(), std::byte{kPoison});
    outputs[out].back() = std::byte{0};
    EXPECT_THAT(compare(problem, reference, outputs).sentence, HasSubstr("out was written after the last sequence"));
  }
}

// More rows than timing data draws at random.
TEST(QueryRows, TimingDataRepeatsRowsOfQ) {
  constexpr size_t kSequences = 20;
  for (const bool jagged : {false, true}) {
    Lengths lengths{Rows(kSequences, 1000), Rows(kSequences, 3), 1000, {{"Lq", Rows(kSequences, 5)}}};
    if (jagged) lengths.other_rows["Lq"].back() = 9;  // the most, in a sequence that is not among the first
    const ProblemData timed = *make_timing_data(delta_spec(jagged), Direction::kForward, lengths, 1);
    const int64_t queries = lengths.total_rows("Lq");
    EXPECT_EQ(timed.shapes[at(timed, "q")], (Rows{queries, 2, 16}));
    EXPECT_EQ(timed.shapes[at(timed, "k")], (Rows{20000, 2, 16}));
    EXPECT_EQ(timed.shapes[at(timed, "out")], (Rows{queries, 2, 8}));
    EXPECT_EQ(timed.sizes[at(timed, "q")], static_cast<size_t>(queries) * 2 * 16 * 2);
    EXPECT_EQ(timed.sizes[at(timed, "k")], size_t{20000} * 2 * 16 * 2);
    EXPECT_LT(timed.images[at(timed, "k")].size(), timed.sizes[at(timed, "k")]);
    EXPECT_EQ(timed.sizes[at(timed, "out")], static_cast<size_t>(queries) * 2 * 8 * 2);
    EXPECT_EQ(timed.values[at(timed, "max_delta_len")].scalar, jagged ? 9 : 5);
    if (!jagged) continue;
    const HostTensor offsets = unpack(timed.images[at(timed, "seq_offsets_q")], DataType::kInt64, {kSequences + 1});
    EXPECT_EQ(offsets.integers[1], 5);
    EXPECT_EQ(offsets.integers.back(), queries);
  }
}

// The first sequences may have no rows of q that could be repeated.
TEST(QueryRows, TimingDataOfQIsDrawnWhereTheFirstSequencesHaveNone) {
  Lengths lengths{Rows(20, 1000), Rows(20, 0), 1000, {{"Lq", Rows(20, 0)}}};
  EXPECT_EQ(make_timing_data(delta_spec(true), Direction::kForward, lengths, 1)->images[0].size(), 0u);
  lengths.other_rows["Lq"].back() = 6;
  const ProblemData timed = *make_timing_data(delta_spec(true), Direction::kForward, lengths, 1);
  EXPECT_EQ(timed.shapes[0], (Rows{6, 2, 16}));
  EXPECT_EQ(timed.images[0].size(), 6u * 2 * 16 * 2);
}

TEST(QueryRows, DataChecksLookAtTheOffsetsOfQ) {
  const Instance instance = [] {
    Instance made;
    made.spec = delta_spec(true);
    return made;
  }();
  FakeLaunch launch(instance, some_lengths(true), kDLCPU);
  const auto check = [&] {
    return check_launch_data(nullptr, launch.problem.signature, launch.values.data(), nullptr).message();
  };
  EXPECT_EQ(check(), "");
  auto* const offsets = static_cast<int64_t*>(launch.tensor("seq_offsets_q").data);
  offsets[3] = 11;
  EXPECT_EQ(check(), "seq_offsets_q[3] is 11; it must be at most Lq = 10");
  offsets[3] = 2;
  EXPECT_EQ(check(), "seq_offsets_q[3] is 2; it must be at least seq_offsets_q[2], which is 3");
  offsets[3] = 10;
  launch.value("max_delta_len").integer = 6;
  EXPECT_EQ(check(), "sequence 2 has 7 rows by seq_offsets_q; at most max_delta_len = 6 are allowed");
  launch.value("max_delta_len").integer = 7;
  static_cast<int64_t*>(launch.tensor("num_targets").data)[2] = 6;
  EXPECT_EQ(check(), "num_targets[2] is 6; it must be between 0 and the sequence's 5 rows");
}

}  // namespace
}  // namespace hstujit::test
