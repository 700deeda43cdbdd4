// Launches and generated calls with a relative bias and factors of the scores: tensors whose sizes are the value of an
// integer argument, and outputs that have a part for each sequence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/spec/closeness.h"
#include "compiler/spec/rounding.h"
#include "operations/tuning/data/adversarial_lengths.h"
#include "operations/tuning/data/strided_data.h"
#include "runtime/capi/signature_json.h"
#include "runtime/launch/launcher.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OpSpecPtr bias_spec(const std::string& attn_scale = "rows", int64_t bias_heads = 2) {
  return *parse_op_spec({{"op", "hstu_attention"},
                         {"heads", 2},
                         {"attn_dim", 16},
                         {"hidden_dim", 8},
                         {"dtype", "fp16"},
                         {"rab_heads", bias_heads},
                         {"attn_scale", attn_scale}},
                        "spec");
}

// An odd max_seq_len: rows of the bias do not end where the next one may begin.
const Lengths kBiasLengths{.rows = {3, 0, 9, 1}, .num_targets = {}, .max_seq_len = 9};

Instance instance_of(OpSpecPtr spec) {
  Instance instance;
  instance.spec = std::move(spec);
  return instance;
}

class BiasLaunch : public ::testing::Test {
 protected:
  std::string refusal() {
    const ArgumentChecker checker = ArgumentChecker::create(launch_.problem.signature).value();
    const ArgumentFailure failure = checker.check(launch_.values.data(), launch_.values.size(), {}, &nothing_);
    return checker.explain(failure, launch_.values.data(), {}).message();
  }

  FakeLaunch launch_{instance_of(bias_spec()), kBiasLengths, kDLCUDA, Direction::kBackward};
  bool nothing_ = false;
};

TEST_F(BiasLaunch, GeneratedTensorsAreTaken) {
  EXPECT_EQ(refusal(), "");
  const auto rab = static_cast<size_t>(launch_.index("rab"));
  EXPECT_THAT(launch_.problem.shapes[rab], ElementsAre(4, 2, 9, 9));
  EXPECT_THAT(launch_.problem.strides[rab], ElementsAre(2 * 9 * 16, 9 * 16, 16, 1)) << "16 bytes are 8 elements";
  launch_.value("max_seq_len").integer = 10;
  EXPECT_EQ(refusal(), "rab.shape[2] is 9; it must be max_seq_len, which is 10");
}

// The contiguous strides of a smaller bias are no multiple of 16 bytes, which is not what is wrong with it.
TEST_F(BiasLaunch, ASizeIsSaidBeforeTheStridesThatFollowFromIt) {
  DLTensor& rab = launch_.tensor("rab");
  rab.shape[3] = 7;
  rab.strides = nullptr;
  EXPECT_EQ(refusal(), "rab.shape[3] is 7; it must be max_seq_len, which is 9");
}

TEST_F(BiasLaunch, EveryDimensionIsChecked) {
  const char* const wanted[] = {"must be B = 4", "must be 2", "must be max_seq_len, which is 9",
                                "must be max_seq_len, which is 9"};
  for (const char* name : {"rab", "drab"}) {
    DLTensor& tensor = launch_.tensor(name);
    for (int d = 0; d < 4; ++d) {
      --tensor.shape[d];
      EXPECT_THAT(refusal(), HasSubstr(wanted[d])) << name << " " << d;
      ++tensor.shape[d];
    }
  }
  ++launch_.tensor("attn_scale").shape[0];
  EXPECT_EQ(refusal(), "attn_scale.shape[0] is 14; it must be L = 13, as in q");
}

TEST_F(BiasLaunch, ABiasMayBeSharedByTheBatchAndItsGradientMayNot) {
  int64_t strides[] = {0, 9 * 16, 16, 1};
  launch_.tensor("rab").strides = strides;
  EXPECT_EQ(refusal(), "");
  launch_.tensor("drab").strides = strides;
  EXPECT_THAT(refusal(), HasSubstr("drab.strides[0] is 0; it must be "));
  int64_t tight[] = {2 * 9 * 9, 9 * 9, 9, 1};
  launch_.tensor("rab").strides = tight;
  EXPECT_EQ(refusal(), "rab.strides[0] is 162 elements, 324 bytes; it must be a multiple of 16 bytes");
}

TEST_F(BiasLaunch, WithoutRowsTheGradientOfTheBiasIsStillWritten) {
  const Lengths none{.rows = {0, 0}, .num_targets = {}, .max_seq_len = 9};
  const FakeLaunch launch(instance_of(bias_spec()), none, kDLCUDA, Direction::kBackward);
  const ArgumentChecker checker = ArgumentChecker::create(launch.problem.signature).value();
  bool nothing = true;
  EXPECT_TRUE(checker.check(launch.values.data(), launch.values.size(), {}, &nothing).none());
  EXPECT_FALSE(nothing);
}

TEST(BiasSignature, SaysThatSizesAreMaxSeqLen) {
  const Signature signature = bias_spec()->signature(Direction::kBackward);
  const auto json = capi::signature_json(signature);
  for (const char* name : {"rab", "drab"}) {
    const auto& argument = json[static_cast<size_t>(find_argument(signature, name))];
    EXPECT_EQ(argument["shape"].dump(), R"(["B",2,"max_seq_len","max_seq_len"])");
  }
}

TEST(BiasSignature, NeedsTheInteger) {
  Signature signature = bias_spec()->signature(Direction::kForward);
  signature[static_cast<size_t>(find_argument(signature, "max_seq_len"))].name = "another";
  EXPECT_EQ(ArgumentChecker::create(signature).status().message(),
            "rab.shape[2] is max_seq_len, but max_seq_len is no integer argument");
}

// Outputs as a kernel would leave them that writes the rounded reference.
std::vector<std::vector<std::byte>> exact_outputs(const ProblemData& problem, const std::vector<HostValue>& reference) {
  ProblemData written = problem;
  written.strides.clear();
  written.offsets.clear();
  for (size_t i = 0; i < problem.signature.size(); ++i) {
    if (problem.signature[i].role != ArgumentRole::kOutput) continue;
    const size_t bytes = [&] {
      size_t elements = 1;
      for (const int64_t size : problem.shapes[i]) elements *= static_cast<size_t>(size);
      return elements * size_of(problem.signature[i].dtype);
    }();
    written.images[i] = pack(reference[i].tensor, problem.signature[i].dtype);
    written.images[i].resize(bytes, std::byte{kPoison});
  }
  for (size_t i = 0; i < problem.signature.size(); ++i) {
    if (problem.signature[i].role == ArgumentRole::kInput) written.shapes[i].clear();  // stays as it is
  }
  align_rows(written);
  return written.images;
}

class BiasGradients : public ::testing::Test {
 protected:
  size_t index(std::string_view name) const { return static_cast<size_t>(find_argument(problem_.signature, name)); }

  ProblemData problem_ = *make_problem_data(bias_spec(), Direction::kBackward, kBiasLengths, 1, 3);
  std::vector<HostValue> reference_ = reference_outputs(problem_);
  std::vector<std::vector<std::byte>> outputs_ = exact_outputs(problem_, reference_);
};

TEST_F(BiasGradients, AreComparedWithTheReference) {
  const Agreement agreement = compare(problem_, reference_, outputs_);
  EXPECT_EQ(agreement.sentence, "");
  EXPECT_LE(agreement.error, 1e-3);
  for (const char* name : {"drab", "dattn_scale"}) {
    auto outputs = outputs_;
    outputs[index(name)][3] ^= std::byte{0x40};
    EXPECT_THAT(compare(problem_, reference_, outputs).sentence, ::testing::StartsWith(name));
  }
}

TEST_F(BiasGradients, ElementsOfNoPairMustBeWrittenAsZero) {
  // Row 4 of a sequence of 3 rows, and row 0 of one without rows.
  for (const int64_t element : {4 * 16, 1 * 2 * 9 * 16}) {
    auto outputs = outputs_;
    auto* const at = &outputs[index("drab")][static_cast<size_t>(2 * element)];
    EXPECT_EQ(at[0], std::byte{0});
    at[0] = at[1] = std::byte{kPoison};
    EXPECT_THAT(compare(problem_, reference_, outputs).sentence, HasSubstr("drab has elements that are not numbers"));
    at[0] = std::byte{0};
    at[1] = std::byte{0x30};  // 0.125
    EXPECT_THAT(compare(problem_, reference_, outputs).sentence, ::testing::StartsWith("drab"));
  }
}

TEST(BiasCompare, ASumThatCancelsIsMeasuredByItsRounding) {
  const ProblemData problem = *make_problem_data(bias_spec("scalar"), Direction::kBackward, kBiasLengths, 1, 0);
  std::vector<HostValue> reference = reference_outputs(problem);
  const auto index = static_cast<size_t>(find_argument(problem.signature, "dattn_scale"));
  HostTensor& slope = reference[index].tensor;
  slope.reals[0] = 1e-6;  // as if the rows had cancelled
  const double rounding =
      ReferenceComparison(*problem.spec, problem.direction, problem.lengths, problem.values, reference).rounding(index);
  EXPECT_GT(rounding, 1e-5);
  const auto outputs = exact_outputs(problem, reference);
  slope.reals[0] += 0.9 * rounding;
  EXPECT_EQ(compare(problem, reference, outputs).sentence, "");
  slope.reals[0] += 0.2 * rounding;
  EXPECT_THAT(compare(problem, reference, outputs).sentence, ::testing::StartsWith("dattn_scale differs"));
}

TEST_F(BiasGradients, GapsAndRowsPastTheLastSequenceStayAsTheyAre) {
  auto outputs = outputs_;
  outputs[index("drab")][2 * 9] = std::byte{0};
  EXPECT_EQ(compare(problem_, reference_, outputs).sentence, "drab was written outside of its strided rows");
  outputs = outputs_;
  outputs[index("dattn_scale")].back() = std::byte{0};
  EXPECT_EQ(compare(problem_, reference_, outputs).sentence, "dattn_scale was written after the last sequence");
}

TEST_F(BiasGradients, SlicesOfWiderTensorsHoldTheSame) {
  const ProblemData strided = spread(problem_);
  EXPECT_THAT(strided.strides[index("rab")], ElementsAre(2 * (9 * 24 + 8) + 8, 9 * 24 + 8, 24, 1));
  EXPECT_EQ(*gather(strided, index("rab"), strided.images[index("rab")]),
            *gather(problem_, index("rab"), problem_.images[index("rab")]));
  EXPECT_EQ(gather(strided, index("rab"), strided.images[index("rab")])->size(), 4U * 2 * 9 * 9 * 2);
}

// Whether what was drawn begins anew after `drawn` parts, and not before.
void expect_parts_differ(const std::vector<std::byte>& image, size_t part) {
  ASSERT_GE(image.size(), part + 64);
  EXPECT_FALSE(std::equal(image.data(), image.data() + 64, image.data() + part));
}

TEST(BiasTiming, PartsOfTheFirstSequencesAreRepeated) {
  Lengths lengths;
  lengths.rows.assign(200, 100);
  lengths.max_seq_len = 101;
  const ProblemData timed = *make_timing_data(bias_spec(), Direction::kBackward, lengths, 1);
  const auto rab = static_cast<size_t>(find_argument(timed.signature, "rab"));
  const auto factors = static_cast<size_t>(find_argument(timed.signature, "attn_scale"));
  EXPECT_THAT(timed.shapes[rab], ElementsAre(200, 2, 101, 101));
  const size_t part = 2 * 101 * 104 * 2, drawn = 82;
  EXPECT_EQ(timed.sizes[rab], 200 * part);
  EXPECT_EQ(timed.images[rab].size(), drawn * part);
  expect_parts_differ(timed.images[rab], part);
  EXPECT_EQ(timed.sizes[factors], 200U * 100 * 4);
}

TEST(BiasTiming, FewLargePartsAreDrawn) {
  Lengths lengths;
  lengths.rows.assign(12, 1);
  lengths.max_seq_len = 2000;
  const ProblemData timed = *make_timing_data(bias_spec(), Direction::kForward, lengths, 1);
  const auto rab = static_cast<size_t>(find_argument(timed.signature, "rab"));
  const size_t part = size_t{2} * 2000 * 2000 * 2, drawn = (size_t{1} << 25) / (2 * 2000 * 2000);
  EXPECT_EQ(timed.sizes[rab], 12 * part);
  EXPECT_EQ(timed.images[rab].size(), drawn * part);
  expect_parts_differ(timed.images[rab], part);
}

TEST(BiasMemory, MoreThanTheMachineHoldsIsASentence) {
  const Lengths lengths{.rows = {1, 1}, .num_targets = {}, .max_seq_len = 1 << 28};
  for (const auto& status : {make_problem_data(bias_spec(), Direction::kBackward, lengths, 1, 0).status(),
                             make_timing_data(bias_spec(), Direction::kBackward, lengths, 1).status()}) {
    EXPECT_EQ(status.code(), Code::kOutOfMemory);
    EXPECT_THAT(status.message(), HasSubstr("rab and drab of 2 sequences with max_seq_len 268435456 take "));
  }
}

TEST(BiasMemory, AdversarialLengthsKeepTheBiasSmall) {
  const Lengths lengths = adversarial_lengths(*bias_spec(), Direction::kBackward, 1 << 14, 1);
  EXPECT_LE(static_cast<double>(lengths.rows.size()) * 2 * lengths.max_seq_len * lengths.max_seq_len, 1 << 26);
  EXPECT_GE(lengths.max_seq_len, 640);
  EXPECT_THAT(lengths.rows, ::testing::Each(::testing::Le(lengths.max_seq_len)));
  EXPECT_THAT(lengths.rows, ::testing::IsSupersetOf({0, 1, 257}));
}

}  // namespace
}  // namespace hstujit::test
