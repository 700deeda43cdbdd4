// construct_full_kv: what it takes, what its steps are, its reference, and what is refused.
#include "compiler/spec/batch.h"
#include "compiler/spec/sequence_rows.h"
#include "tests/operators/kv_cases.h"

namespace hstujit {
namespace {

constexpr const char* kOp = "construct_full_kv";

TEST(ConstructFullKv, TakesCachesAndNewRows) {
  const OpSpecPtr spec = *parse_kv(kOp, {{"offsets_dtype", "int32"}});
  EXPECT_EQ(arguments_of(*spec),
            "k_cache bf16(Ll, 16), delta_k bf16(B*delta_size, 16), kv_caching_offsets int32(B+1), delta_size, "
            "v_cache bf16(Ll, 32), delta_v bf16(B*delta_size, 32), full_k bf16(L, 16), full_v bf16(L, 32)");
  EXPECT_FALSE(spec->supports(Direction::kBackward));
  const Signature signature = spec->signature(Direction::kForward);
  EXPECT_EQ(signature[0].shape[0].offsets, "kv_caching_offsets");
  EXPECT_EQ(signature[static_cast<size_t>(find_argument(signature, "delta_size"))].max, int64_t{1} << 28);
}

// Kernels and keys are the steps' own: steps of one name have one spec.
TEST(ConstructFullKv, StepsOfOtherWidthsHaveOtherNames) {
  const auto names = [](const OpSpecPtr& spec) {
    std::string text;
    for (const ProgramStep& step : spec->program(Direction::kForward)->steps)
      text += step.name + " " + key_text(*step.spec) + "\n";
    return text;
  };
  EXPECT_EQ(names(*parse_kv(kOp)),
            "concat_2d_jagged {\"op\":\"concat_2d_jagged\",\"width\":16,\"dense_right\":true}\n"
            "concat_2d_jagged_2 {\"op\":\"concat_2d_jagged\",\"width\":32,\"dense_right\":true}\n");
  EXPECT_EQ(names(*parse_kv(kOp, {{"hidden_dim", 8}})),
            "concat_2d_jagged {\"op\":\"concat_2d_jagged\",\"width\":16,\"dense_right\":true}\n"
            "concat_2d_jagged {\"op\":\"concat_2d_jagged\",\"width\":16,\"dense_right\":true}\n");
}

TEST(ConstructFullKv, AppendsNewRowsToEachCache) {
  const OpSpecPtr spec = *parse_kv(kOp);
  const Lengths lengths{{4, 2, 3}, {}, 4, {{"Ll", {2, 0, 1}}, {std::string(kQueryAxis), {2, 2, 2}}}};
  std::vector<HostValue> values = spec->make_inputs(Direction::kForward, lengths, 1);
  EXPECT_EQ(tensor_of(*spec, values, "kv_caching_offsets").integers, (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(values[3].scalar, 2);
  for (const auto& [side, width, sign] : {std::tuple("k", 16, 1.0), std::tuple("v", 32, -1.0)}) {
    tensor_of(*spec, values, std::string(side) + "_cache") = tensor_of_rows({sign * 1, sign * 2, sign * 3}, width);
    std::vector<double> fresh;
    for (int row = 11; row <= 16; ++row) fresh.push_back(sign * row);
    tensor_of(*spec, values, std::string("delta_") + side) = tensor_of_rows(fresh, width);
  }
  spec->reference(Direction::kForward, lengths, values);
  EXPECT_EQ(rows_of(tensor_of(*spec, values, "full_k")), (std::vector<double>{1, 2, 11, 12, 13, 14, 3, 15, 16}));
  EXPECT_EQ(rows_of(tensor_of(*spec, values, "full_v")),
            (std::vector<double>{-1, -2, -11, -12, -13, -14, -3, -15, -16}));
}

TEST(ConstructFullKv, BytesAreThoseOfEachTensorOnce) {
  const OpSpecPtr spec = *parse_kv(kOp);
  const Lengths lengths{{4, 2, 3}, {}, 4, {{"Ll", {2, 0, 1}}, {std::string(kQueryAxis), {2, 2, 2}}}};
  EXPECT_EQ(spec->work(Direction::kForward, lengths).bytes, 2 * 9 * (16 + 32) * 2 + 3 * 8);
}

// A generated batch has the rows of the steps' axes.
TEST(ConstructFullKv, BatchesHaveRowsOnEveryAxis) {
  Instance instance;
  instance.spec = *parse_kv(kOp);
  instance.lengths.list = {40, 7, 0};
  const Lengths lengths = make_lengths(instance, 40);
  EXPECT_EQ(lengths.rows, (std::vector<int64_t>{40, 10, 10}));
  EXPECT_EQ(lengths.rows_of("Ll"), (std::vector<int64_t>{30, 0, 0}));
  EXPECT_EQ(lengths.rows_of(kQueryAxis), (std::vector<int64_t>{10, 10, 10}));
  EXPECT_EQ(batch_size(instance, 40).rows_of("Ll"), 30);
}

TEST(ConstructFullKv, SaysWhatIsWrong) {
  const auto error = [](const nlohmann::ordered_json& more) { return parse_kv(kOp, more).status().message(); };
  EXPECT_EQ(error({{"heads", 1024}, {"hidden_dim", 24}}),
            "ops[0].heads is 1024, so rows of v have 24576 elements; allowed: at most 16384");
  EXPECT_EQ(error({{"dtype", "fp32"}, {"alignment", 2}}),
            "ops[0].alignment is 2, but an element of fp32 has 4 bytes; allowed: a power of two from 4 to 16");
  EXPECT_EQ(error({{"attn_dim", 257}}),
            "ops[0].attn_dim is 257; allowed: an integer from 1 to 256 (head dimension of k)");
  EXPECT_EQ(error({{"attn_dim", 25}, {"hidden_dim", 1}}), "");
  const auto instance = parse_instance({{"name", "kv"},
                                        {"op", kOp},
                                        {"attn_dim", 8},
                                        {"hidden_dim", 8},
                                        {"max_seq_len", 64},
                                        {"directions", {"backward"}}},
                                       "ops[0]", ".");
  EXPECT_EQ(instance.status().message(),
            "ops[0].directions[0] is \"backward\", but construct_full_kv has no backward kernel; allowed: "
            "\"forward\"");
}

// It has heads, and no kernels for small batches.
TEST(ConstructFullKv, HasNoSmallBatches) {
  const std::vector<std::string_view>& fields = instance_field_names(kOp);
  EXPECT_EQ(std::count(fields.begin(), fields.end(), "small_batches"), 0);
  const std::vector<std::string_view>& attention = instance_field_names("norm_attention");
  EXPECT_EQ(std::count(attention.begin(), attention.end(), "small_batches"), 1);
}

}  // namespace
}  // namespace hstujit
