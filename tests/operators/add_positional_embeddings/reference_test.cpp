// The reference of add_positional_embeddings against values worked out by hand from docs/ops-sequences.md.
#include <gtest/gtest.h>

#include "compiler/spec/operators/add_positional_embeddings/spec.h"
#include "tests/row/sequence_values.h"

namespace hstujit {
namespace {

using Numbers = std::vector<double>;

AddPositionalEmbeddingsSpec make_spec(bool num_targets, bool interleave_targets) {
  PositionParams params;
  params.width = 1;
  params.num_targets = num_targets;
  params.interleave_targets = interleave_targets;
  return AddPositionalEmbeddingsSpec(params);
}

// Sequences of 5, 0 and 3 rows. Of 5 positions, as the reference has them where the longest one has 6 rows.
Lengths lengths() { return {{5, 0, 3}, {2, 0, 2}, 6, {}}; }
const Numbers kTable = {0, 100, 200, 300, 400};

// Output for rows 1, 2, ...
Numbers out_of(const AddPositionalEmbeddingsSpec& spec, const Numbers& table) {
  return sequences_output(
      spec, Direction::kForward, lengths(),
      {{"seq_embeddings", {1, 2, 3, 4, 5, 6, 7, 8}}, {"position_embeddings_weight", table}, {"alpha", {0.5}}}, "out");
}

TEST(AddPositionalEmbeddings, PositionsOfASequenceCountFromZero) {
  EXPECT_EQ(out_of(make_spec(false, false), kTable), (Numbers{0.5, 101, 201.5, 302, 402.5, 3, 103.5, 204}));
}

TEST(AddPositionalEmbeddings, RowsBehindTheTableHaveItsLastRow) {
  EXPECT_EQ(out_of(make_spec(false, false), {10, 20}), (Numbers{10.5, 21, 21.5, 22, 22.5, 13, 23.5, 24}));
}

// The first target has position 3 in the first sequence, 1 in the last.
TEST(AddPositionalEmbeddings, TargetsShareAPosition) {
  EXPECT_EQ(out_of(make_spec(true, false), kTable), (Numbers{0.5, 101, 201.5, 302, 302.5, 3, 103.5, 104}));
}

// Two targets are four rows: one more than the last sequence has.
TEST(AddPositionalEmbeddings, InterleavedTargetsMayBeMoreThanTheSequence) {
  EXPECT_EQ(out_of(make_spec(true, true), kTable), (Numbers{0.5, 101, 101.5, 102, 102.5, 3, 3.5, 4}));
}

TEST(AddPositionalEmbeddings, GradientOfTheTableIsASumOverItsRows) {
  const RowValues values = {{"dout", {1, 2, 4, 8, 16, 32, 64, 128}}, {"alpha", {0.5}}};
  const auto gradient = [&](const AddPositionalEmbeddingsSpec& spec, const char* name) {
    return sequences_output(spec, Direction::kBackward, lengths(), values, name);
  };
  EXPECT_EQ(gradient(make_spec(true, false), "dseq_embeddings"), (Numbers{0.5, 1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(gradient(make_spec(true, false), "dposition_embeddings_weight"), (Numbers{33, 194, 4, 24, 0}));
  EXPECT_EQ(gradient(make_spec(true, true), "dposition_embeddings_weight"), (Numbers{225, 30, 0, 0, 0}));
}

}  // namespace
}  // namespace hstujit
