// Data checks of offsets whose rows no tensor bounds, and of axes whose rows are those of others together.
#include <fmt/format.h>

#include "runtime/launch/data_checks.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using Rows = std::vector<int64_t>;

// A call of the operator over sequences of these rows in all.
struct JoinedCall {
  JoinedCall(const Json& json, const Rows& rows) : launch(instance_of(json), lengths_of(json, rows), kDLCPU) {}

  static Instance instance_of(const Json& json) {
    Instance made;
    made.spec = *parse_op_spec(json, "");
    return made;
  }
  static Lengths lengths_of(const Json& json, const Rows& rows) {
    const OpSpecPtr spec = *parse_op_spec(json, "");
    Lengths lengths{{}, {}, 16, {}};
    for (size_t b = 0; b < rows.size(); ++b) {
      const GeneratedRows generated = spec->generated_rows(static_cast<int64_t>(b), rows[b], 16);
      lengths.rows.push_back(generated.rows);
      for (const auto& [axis, count] : generated.others) lengths.other_rows[axis].push_back(count);
    }
    return lengths;
  }

  std::string check() {
    return check_launch_data(nullptr, launch.problem.signature, launch.values.data(), nullptr).message();
  }
  int64_t* integers(std::string_view name) { return static_cast<int64_t*>(launch.tensor(name).data); }

  FakeLaunch launch;
};

// The operator's launches take no max_seq_len: a sequence has no more rows than positions can count.
TEST(JoinedRows, ASequenceOfMoreRowsThanPositionsCountIsRefused) {
  JoinedCall call({{"op", "add_positional_embeddings"}, {"width", 8}}, {9, 3});
  ASSERT_EQ(call.check(), "");
  // Only offsets are read.
  int64_t shape[] = {(int64_t{1} << 29), 8};
  for (const char* name : {"seq_embeddings", "out"}) call.launch.tensor(name).shape = shape;
  int64_t* const offsets = call.integers("seq_offsets");
  offsets[1] = int64_t{1} << 28;
  offsets[2] = offsets[1] + 3;
  EXPECT_EQ(call.check(), "");
  ++offsets[1];
  EXPECT_EQ(call.check(), "sequence 0 has 268435457 rows by seq_offsets; at most 268435456 are allowed");
}

TEST(JoinedRows, OffsetsOfAnAxisThatNoTensorHasAreChecked) {
  for (const Json& json : {Json{{"op", "update_kv_cache"}, {"attn_dim", 8}, {"hidden_dim", 8}},
                           Json{{"op", "split_2d_jagged"}, {"width", 8}, {"left_only", true}}}) {
    const bool cache = json["op"] == "update_kv_cache";
    const std::string left = cache ? "kv_caching_offsets" : "offsets_left";
    const std::string right = cache ? "delta_offsets" : "offsets_right", whole = cache ? "k" : "values";
    JoinedCall call(json, {9, 0, 9});
    ASSERT_EQ(call.check(), "") << json;
    int64_t* const offsets = call.integers(right);
    const Rows given(offsets, offsets + 4);
    offsets[1] = given[0] - 2;
    EXPECT_EQ(call.check(), right + "[1] is -2; it must be at least " + right + "[0], which is 0");
    offsets[1] = given[1];
    offsets[0] = 9;
    EXPECT_EQ(call.check(), right + "[0] is 9; it must be 0");
    offsets[0] = 0;
    offsets[3] = given[3] + 1;
    EXPECT_EQ(call.check(), left + "[3] + " + right + "[3] is 19; it must be at most the rows of " + whole + ", 18");
    offsets[3] = std::numeric_limits<int64_t>::max();
    EXPECT_EQ(call.check(), "sequence 2 has " + std::to_string(offsets[3] - given[2]) + " rows by " + right +
                                "; at most 268435456 are allowed");
  }
}

TEST(JoinedRows, RowsOfBothSidesAreNoMoreThanThoseOfBoth) {
  JoinedCall jagged({{"op", "concat_2d_jagged"}, {"width", 8}}, {9, 5, 9});
  ASSERT_EQ(jagged.check(), "");
  // Each side's are within its own rows.
  jagged.launch.tensor("out").shape[0] -= 1;
  EXPECT_EQ(jagged.check(), "offsets_left[3] + offsets_right[3] is 23; it must be at most the rows of out, 22");

  JoinedCall dense({{"op", "concat_2d_jagged"}, {"width", 8}, {"dense_right", true}}, {9, 5, 9});
  ASSERT_EQ(dense.check(), "");
  dense.launch.value("max_len_right").integer += 1;
  EXPECT_EQ(dense.check().find("offsets_left[3] + 3 * max_len_right is "), 0u) << dense.check();
}

TEST(JoinedRows, OffsetsOfTheWholeAreThoseOfItsParts) {
  JoinedCall call({{"op", "cached_stu_layer"}, {"width", 8}, {"attn_dim", 8}, {"hidden_dim", 8}}, {9, 5, 9});
  ASSERT_EQ(call.check(), "");
  const int64_t cached = call.integers("kv_caching_offsets")[1];
  const int64_t end = cached + call.launch.value("max_delta_len").integer;
  call.integers("seq_offsets")[1] += 1;
  EXPECT_EQ(call.check(), fmt::format("seq_offsets[1] is {}; it must be kv_caching_offsets[1] + 1 * max_delta_len, "
                                      "which is {}",
                                      end + 1, end));
}

}  // namespace
}  // namespace hstujit::test
