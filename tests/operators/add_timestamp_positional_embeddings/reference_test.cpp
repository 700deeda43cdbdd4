// The reference of add_timestamp_positional_embeddings against values worked out by hand from docs/ops-sequences.md.
#include <gtest/gtest.h>

#include "compiler/spec/closeness.h"
#include "compiler/spec/operators/add_timestamp_positional_embeddings/spec.h"
#include "compiler/spec/rounding.h"
#include "tests/row/sequence_values.h"

namespace hstujit {
namespace {

using Numbers = std::vector<double>;

AddTimestampPositionalEmbeddingsSpec make_spec(TimestampPositionParams params = {}) {
  params.width = 1;
  return AddTimestampPositionalEmbeddingsSpec(params);
}

// 0, step, 2 * step, ...
Numbers table_of(int64_t rows, double step) {
  Numbers table;
  for (int64_t i = 0; i < rows; ++i) table.push_back(static_cast<double>(i) * step);
  return table;
}

// Which row of the table of positions each row of a sequence of 6 finds, with so many targets and contextual rows.
Numbers positions(const TimestampPositionParams& params, int64_t targets, double context, int64_t table_rows) {
  const RowValues values = {
      {"seq_embeddings", Numbers(6, 0)},    {"position_embeddings_weight", table_of(table_rows, 1)},
      {"timestamp_embeddings_weight", {0}}, {"alpha", {1}},
      {"time_bucket_increments", {60}},     {"timestamps", Numbers(6, 0)},
      {"max_contextual_seq_len", {context}}};
  return sequences_output(make_spec(params), Direction::kForward, {{6}, {targets}, 6, {}}, values, "out");
}

TEST(AddTimestampPositionalEmbeddings, PositionsCountFromTheEnd) {
  EXPECT_EQ(positions({}, 0, 0, 10), (Numbers{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(positions({}, 0, 2, 10), (Numbers{0, 1, 6, 5, 4, 3}));
  EXPECT_EQ(positions({}, 0, 9, 10), (Numbers{0, 1, 2, 3, 4, 5})) << "all rows are contextual";
}

TEST(AddTimestampPositionalEmbeddings, PositionsBehindTheTableHaveItsLastRow) {
  EXPECT_EQ(positions({}, 0, 2, 5), (Numbers{0, 1, 4, 4, 4, 3}));
  EXPECT_EQ(positions({}, 0, 9, 4), (Numbers{0, 1, 2, 3, 3, 3}));
  EXPECT_EQ(positions({}, 0, 2, 1), Numbers(6, 0));
}

// All have that of the first one, which stands behind the history.
TEST(AddTimestampPositionalEmbeddings, TargetsShareAPosition) {
  TimestampPositionParams params;
  params.num_targets = true;
  EXPECT_EQ(positions(params, 2, 1, 10), (Numbers{0, 4, 3, 2, 1, 1}));
  params.interleave_targets = true;
  EXPECT_EQ(positions(params, 2, 1, 10), (Numbers{0, 2, 1, 1, 1, 1}));
  EXPECT_EQ(positions(params, 4, 1, 10), (Numbers{0, 1, 1, 1, 1, 1})) << "eight rows of targets in a sequence of six";
}

// The bucket of each row of one sequence, of 4 buckets unless said otherwise.
Numbers buckets(const TimestampPositionParams& params, const Numbers& timestamps, double increments,
                const Numbers& query_time = {}, int64_t table_rows = 4) {
  const auto rows = static_cast<int64_t>(timestamps.size());
  const RowValues values = {{"seq_embeddings", Numbers(timestamps.size(), 0)},
                            {"position_embeddings_weight", {0}},
                            {"timestamp_embeddings_weight", table_of(table_rows, 1)},
                            {"alpha", {1}},
                            {"time_bucket_increments", {increments}},
                            {"timestamps", timestamps},
                            {"query_time", query_time},
                            {"max_contextual_seq_len", {0}}};
  return sequences_output(make_spec(params), Direction::kForward, {{rows}, {}, rows, {}}, values, "out");
}

// Calls are generated for every max_seq_len that a config may have; a table has a limit of its own.
TEST(AddTimestampPositionalEmbeddings, GeneratedTablesAreNoLargerThanATableMayBe) {
  const AddTimestampPositionalEmbeddingsSpec spec = make_spec({});
  for (const int64_t longest : {1, 2, 1 << 20, 1 << 28}) {
    const int64_t rows = spec.generated_sizes({{5, 1}, {}, longest, {}}).at("Kp");
    EXPECT_EQ(rows, std::clamp<int64_t>(longest - 1, 1, kMaxTableRows)) << longest;
  }
}

// Ages of 961, 540, 240, 239, 60, 59 and 0 seconds.
TEST(AddTimestampPositionalEmbeddings, ABucketIsTheRootOfAnAge) {
  const Numbers timestamps = {39, 460, 760, 761, 940, 941, 1000};
  EXPECT_EQ(buckets({}, timestamps, 60, {}, 10), (Numbers{4, 3, 2, 1, 1, 0, 0}));
  EXPECT_EQ(buckets({}, timestamps, 60), (Numbers{3, 3, 2, 1, 1, 0, 0})) << "the last bucket has what is older";
  EXPECT_EQ(buckets({}, timestamps, 240, {}, 10), (Numbers{2, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(buckets({}, timestamps, 1e-6), (Numbers{3, 3, 3, 3, 3, 3, 1})) << "an age is at least a millionth";
}

// e * 60 = 163.1 and e * e * 60 = 443.3. The logarithm of what is younger than a unit is negative.
TEST(AddTimestampPositionalEmbeddings, ABucketIsTheLogarithmOfAnAge) {
  TimestampPositionParams params;
  params.time_bucket_fn = "log";
  EXPECT_EQ(buckets(params, {556, 557, 836, 837, 940, 999, 1000}, 60), (Numbers{2, 1, 1, 0, 0, 0, 0}));
}

TEST(AddTimestampPositionalEmbeddings, WhatIsLaterThanTheLastRowHasNoAge) {
  TimestampPositionParams params;
  EXPECT_EQ(buckets(params, {5000, 1000, 760, 1000}, 60), (Numbers{0, 0, 2, 0}));
  params.time_bucket_fn = "log";
  EXPECT_EQ(buckets(params, {5000, 1000, 556, 1000}, 60), (Numbers{0, 0, 2, 0}));
}

// More than 2^63 seconds lie between the least and the greatest of these.
TEST(AddTimestampPositionalEmbeddings, AnAgeThatNoIntegerHoldsIsTheOldestOne) {
  constexpr double kFirst = -0x1p63, kLast = 9e18;
  EXPECT_EQ(buckets({}, {kFirst, -9e18, 0, kLast, kFirst, kLast}, 60), (Numbers{3, 3, 3, 0, 3, 0}));
  EXPECT_EQ(buckets({}, {kLast, 0, kFirst}, 60), (Numbers{0, 0, 0})) << "all are later than the last row";
  EXPECT_EQ(buckets({}, {kFirst, kLast}, 1e18, {}, 10), (Numbers{3, 0})) << "the root of 9.22";
  EXPECT_EQ(buckets({}, {kFirst, -4e18, -1}, 1e18, {}, 10), (Numbers{3, 2, 0}));
  TimestampPositionParams params;
  params.query_time = true;
  EXPECT_EQ(buckets(params, {kFirst, kLast}, 60, {kLast}), (Numbers{3, 0}));
  EXPECT_EQ(buckets(params, {kFirst, kLast}, 60, {kFirst}), (Numbers{0, 0}));
}

TEST(AddTimestampPositionalEmbeddings, AgesCountToTheQuerysTime) {
  TimestampPositionParams params;
  params.query_time = true;
  EXPECT_EQ(buckets(params, {760, 1000, 5000}, 60, {1000}), (Numbers{2, 0, 0}));
  EXPECT_EQ(buckets(params, {760, 1000, 5000}, 60, {1240}), (Numbers{2, 2, 0}));
}

// Sequences of 2, 0 and 3 rows: each has its own end and time. Of 3 positions, as the reference has them where the
// longest one has 4 rows.
TEST(AddTimestampPositionalEmbeddings, EachSequenceByItself) {
  const Lengths lengths{{2, 0, 3}, {}, 4, {}};
  RowValues values = {{"seq_embeddings", {1, 2, 3, 4, 5}},
                      {"position_embeddings_weight", {10, 20, 30}},
                      {"timestamp_embeddings_weight", {100, 200, 300}},
                      {"alpha", {2}},
                      {"time_bucket_increments", {1}},
                      {"timestamps", {6, 10, 0, 1, 2}},
                      {"max_contextual_seq_len", {1}}};
  const auto spec = make_spec();
  // Positions 0, 2 and 0, 3 -> 2, 2. Ages 4, 0 and 2, 1, 0.
  EXPECT_EQ(sequences_output(spec, Direction::kForward, lengths, values, "out"),
            (Numbers{2 + 10 + 300, 4 + 30 + 100, 6 + 10 + 200, 8 + 30 + 200, 10 + 30 + 100}));

  values["dout"] = {1, 2, 4, 8, 16};
  const auto gradient = [&](const char* name) {
    return sequences_output(spec, Direction::kBackward, lengths, values, name);
  };
  EXPECT_EQ(gradient("dseq_embeddings"), (Numbers{2, 4, 8, 16, 32}));
  EXPECT_EQ(gradient("dposition_embeddings_weight"), (Numbers{5, 0, 26}));
  Numbers of_ages = gradient("dtimestamp_embeddings_weight");
  of_ages.resize(4);
  EXPECT_EQ(of_ages, (Numbers{18, 12, 1, 0}));
}

constexpr DataType k16Bits[] = {DataType::kBf16, DataType::kFp16};

TimestampPositionParams rounding_params(DataType dtype) {
  TimestampPositionParams params;
  params.dtype = dtype;
  params.round_embeddings = true;
  return params;
}

// One row each of x, of both tables and of times, by which every row finds these.
RowValues one_row(double alpha, double x, double at, double of_age) {
  return {{"seq_embeddings", {x}},
          {"position_embeddings_weight", {at}},
          {"timestamp_embeddings_weight", {of_age}},
          {"alpha", {alpha}},
          {"time_bucket_increments", {60}},
          {"timestamps", {0}},
          {"max_contextual_seq_len", {0}}};
}

double out_of(const TimestampPositionParams& params, const RowValues& values) {
  return sequences_output(make_spec(params), Direction::kForward, {{1}, {}, 1, {}}, values, "out").at(0);
}

// u is half of what numbers of that type from 1 to 2 are apart.
TEST(AddTimestampPositionalEmbeddings, EmbeddingsAreRoundedBeforeTheyAreAdded) {
  for (const DataType dtype : k16Bits) {
    const TimestampPositionParams rounding = rounding_params(dtype);
    TimestampPositionParams exact = rounding;
    exact.round_embeddings = false;
    const double u = unit_roundoff(dtype);
    // 1 + u/2 is 1, as 1 + u is, a tie to even; 1 + 3u/2 is 1 + 2u, and 1 + 3u is 1 + 4u.
    for (const auto& [added, rounded] : {std::pair{0.5, 0.0}, {1.0, 0.0}, {1.5, 2.0}, {3.0, 4.0}}) {
      const RowValues of_tables = one_row(-1, 1, 1, added * u), of_rows = one_row(1 + added * u, 1, 0, -1);
      for (const RowValues& values : {of_tables, of_rows}) {
        EXPECT_EQ(out_of(exact, values), added * u) << added;
        EXPECT_EQ(out_of(rounding, values), rounded * u) << added;
      }
    }
    // The sum of both tables, not each of them: in fp32 they may cancel.
    EXPECT_EQ(out_of(rounding, one_row(0, 0, 1 + u / 2, -1)), u / 2);
  }
}

TEST(AddTimestampPositionalEmbeddings, RoundingToFp32IsNoRounding) {
  const auto key = [](const char* dtype, bool rounds) {
    const Json json = {
        {"op", "add_timestamp_positional_embeddings"}, {"width", 8}, {"dtype", dtype}, {"round_embeddings", rounds}};
    return key_text(**parse_op_spec(json, ""));
  };
  EXPECT_EQ(key("fp32", true), key("fp32", false));
  EXPECT_NE(key("bf16", true), key("bf16", false));
}

// Whether each row of one sequence of equal rows may be `out`.
bool may_be(const TimestampPositionParams& params, const RowValues& row, const Numbers& out) {
  const auto spec = make_spec(params);
  const Signature signature = spec.signature(Direction::kForward);
  std::vector<HostValue> values(signature.size());
  const auto rows = static_cast<int64_t>(out.size());
  for (size_t i = 0; i < signature.size(); ++i) {
    HostTensor& tensor = values[i].tensor;
    if (signature[i].name == "seq_offsets") tensor = {{2}, {}, {0, rows}};
    const auto given = row.find(signature[i].name);
    if (given == row.end()) continue;
    const double number = given->second.at(0);
    const bool of_rows = signature[i].name == "seq_embeddings" || signature[i].name == "timestamps";
    if (signature[i].kind != ArgumentKind::kTensor) {
      values[i].scalar = number;
    } else if (is_integer(signature[i].dtype)) {
      tensor = {{rows}, {}, std::vector<int64_t>(out.size(), static_cast<int64_t>(number))};
    } else {
      tensor = {{of_rows ? rows : 1, 1}, Numbers(of_rows ? out.size() : 1, number), {}};
    }
  }
  std::vector<HostValue> reference = values;
  const Lengths lengths{{rows}, {}, rows, {}};
  spec.reference(Direction::kForward, lengths, reference);
  const auto index = static_cast<size_t>(find_argument(signature, "out"));
  return ReferenceComparison(spec, Direction::kForward, lengths, values, reference).of(index, out).good();
}

// A value that fp32 may leave on either side of the bound between two numbers may be rounded to either. A value farther
// from that bound, and what no such choice explains, is wrong. All are cancelled by a row of -1.
TEST(AddTimestampPositionalEmbeddings, ABoundBetweenTwoNumbersMayBeOnEitherSide) {
  for (const DataType dtype : k16Bits) {
    const TimestampPositionParams params = rounding_params(dtype);
    const double u = unit_roundoff(dtype), near = 0x1p-24;
    const auto near_bound = one_row(-1, 1, 1, u + near), far_from_it = one_row(-1, 1, 1, u + u / 8);
    EXPECT_TRUE(may_be(params, near_bound, {2 * u}));
    EXPECT_TRUE(may_be(params, near_bound, {0}));
    EXPECT_FALSE(may_be(params, near_bound, {32 * u}));
    EXPECT_TRUE(may_be(params, far_from_it, {2 * u}));
    EXPECT_FALSE(may_be(params, far_from_it, {0}));
    // The same holds for many rows: all are near the bound, or none.
    EXPECT_TRUE(may_be(params, near_bound, Numbers(50, 0)));
    EXPECT_FALSE(may_be(params, far_from_it, Numbers(50, 0)));
    // The other factor.
    EXPECT_TRUE(may_be(params, one_row(1 + u + near, 1, 0, -1), {0}));
    EXPECT_FALSE(may_be(params, one_row(1 + u + u / 8, 1, 0, -1), {0}));
    // One rounding only: neither value is near a bound.
    TimestampPositionParams exact = params;
    exact.round_embeddings = false;
    EXPECT_FALSE(may_be(exact, near_bound, {0}));
  }
}

}  // namespace
}  // namespace hstujit
