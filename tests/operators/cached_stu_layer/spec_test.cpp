// cached_stu_layer: what it takes, and that it computes the last rows of what stu_layer computes.
#include <gmock/gmock.h>

#include "compiler/spec/config.h"
#include "compiler/spec/program.h"
#include "compiler/spec/sequence_rows.h"
#include "tests/operators/stu_layer/stu_specs.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

constexpr const char* kCached = "cached_stu_layer";

TEST(CachedStuLayer, TakesNewRowsAndCaches) {
  std::string text;
  const OpSpecPtr spec = stu(kCached, {{"num_targets", true}});
  for (const Argument& argument : spec->signature(Direction::kForward))
    text += argument.name + (argument.kind == ArgumentKind::kTensor ? shape_text(argument) : "") + " ";
  EXPECT_EQ(text,
            "x(B*max_delta_len, 24) input_norm_weight(24) input_norm_bias(24) uvqk_weight(24, 96) uvqk_bias(96) "
            "output_weight(96, 24) output_norm_weight(32) output_norm_bias(32) k_cache(Ll, 16) v_cache(Ll, 32) "
            "kv_caching_offsets(B+1) eps max_delta_len seq_offsets(B+1) num_targets(B) max_seq_len alpha "
            "scaling_seqlen full_k(L, 16) full_v(L, 32) out(B*max_delta_len, 24) ");
  EXPECT_FALSE(spec->supports(Direction::kBackward));
  const Signature signature = spec->signature(Direction::kForward);
  EXPECT_EQ(find_argument(signature, Semantic::kMaxRows, kQueryAxis), find_argument(signature, "max_delta_len"));
  EXPECT_FALSE(every_row_counts(signature));
}

TEST(CachedStuLayer, StepsOfNewRowsSeeThoseAlone) {
  const OpSpecPtr spec = stu(kCached);
  std::string text;
  for (const ProgramStep& step : spec->program(Direction::kForward)->steps) text += step.name + ":" + step.rows + " ";
  EXPECT_EQ(text,
            "layer_norm:Lq addmm:Lq concat_2d_jagged:L concat_2d_jagged_2:L delta_hstu_attention:L "
            "hstu_norm_mul_dropout:Lq addmm_2:Lq ");
  const Lengths lengths{{7, 5}, {}, 7, {{"Ll", {5, 3}}, {std::string(kQueryAxis), {2, 2}}}};
  EXPECT_LT(spec->work(Direction::kForward, lengths).flops,
            stu("stu_layer", {{"training", false}})->work(Direction::kForward, lengths).flops);
}

class Call {
 public:
  Call(OpSpecPtr spec, const Lengths& lengths)
      : spec_(std::move(spec)), signature_(spec_->signature(Direction::kForward)), lengths_(lengths) {
    values_ = spec_->make_inputs(Direction::kForward, lengths, 3);
  }
  HostValue& operator[](std::string_view name) { return values_[static_cast<size_t>(find_argument(signature_, name))]; }
  void take(Call& other) {
    for (const Argument& argument : signature_) {
      if (argument.role == ArgumentRole::kInput && find_argument(other.signature_, argument.name) >= 0 &&
          argument.name != "x")
        (*this)[argument.name] = other[argument.name];
    }
  }
  void run() { spec_->reference(Direction::kForward, lengths_, values_); }

 private:
  OpSpecPtr spec_;
  Signature signature_;
  Lengths lengths_;
  std::vector<HostValue> values_;
};

// Rows [first, first + count) of each sequence, of those columns.
std::vector<double> rows_of(const HostTensor& tensor, const std::vector<std::pair<int64_t, int64_t>>& sequences,
                            int64_t first_column, int64_t columns) {
  std::vector<double> part;
  for (const auto& [first, count] : sequences) {
    for (int64_t row = first; row < first + count; ++row) {
      const auto begin = tensor.reals.begin() + row * tensor.shape[1] + first_column;
      part.insert(part.end(), begin, begin + columns);
    }
  }
  return part;
}

TEST(CachedStuLayer, IsTheLastRowsOfALayer) {
  // Sequences of 7 and 5 rows, of which the last two are new.
  const Lengths all{{7, 5}, {2, 1}, 7, {}};
  const Lengths cached{{7, 5}, {2, 1}, 7, {{"Ll", {5, 3}}, {std::string(kQueryAxis), {2, 2}}}};
  const std::vector<std::pair<int64_t, int64_t>> old_rows = {{0, 5}, {7, 3}}, new_rows = {{5, 2}, {10, 2}};
  for (const Json& more : {Json::object(), Json({{"norm", "rms_norm"}, {"uvqk_bias", false}, {"concat_u", false}})}) {
    Json json = more;
    json["num_targets"] = true;
    Call after(stu(kCached, json), cached);
    json["recompute_uvqk"] = false;
    Call layer(stu("stu_layer", json), all);
    layer.run();
    after.take(layer);
    // Columns u, v, q, k of widths 32, 32, 16, 16.
    const HostTensor& uvqk = layer["uvqk"].tensor;
    after["x"].tensor = {{4, 24}, rows_of(layer["x"].tensor, new_rows, 0, 24), {}};
    after["v_cache"].tensor = {{8, 32}, rows_of(uvqk, old_rows, 32, 32), {}};
    after["k_cache"].tensor = {{8, 16}, rows_of(uvqk, old_rows, 80, 16), {}};
    after.run();
    EXPECT_EQ(after["full_v"].tensor.reals, rows_of(uvqk, {{0, 12}}, 32, 32));
    EXPECT_EQ(after["full_k"].tensor.reals, rows_of(uvqk, {{0, 12}}, 80, 16));
    EXPECT_EQ(after["out"].tensor.reals, rows_of(layer["out"].tensor, new_rows, 0, 24));
  }
}

TEST(CachedStuLayer, GeneratedCallsHaveTheNewRowsOfTheConfig) {
  const auto instance = parse_instance(
      stu_json(kCached, {{"name", "c"}, {"max_seq_len", 16}, {"delta_len", 4}, {"lengths", {16, 3, 9}}}), "test", "");
  ASSERT_TRUE(instance.ok()) << instance.status().message();
  const Lengths lengths = make_lengths(*instance, 16);
  EXPECT_EQ(lengths.rows_of(kQueryAxis), (std::vector<int64_t>{4, 4, 4}));
  EXPECT_EQ(lengths.rows_of("Ll"), (std::vector<int64_t>{12, 0, 5}));
  EXPECT_EQ(lengths.rows, (std::vector<int64_t>{16, 4, 9}));
}

TEST(CachedStuLayer, MistakesAreSentences) {
  const auto mistake = [](const Json& more) {
    return std::string(parse_op_spec(stu_json(kCached, more), "ops[0]").status().message());
  };
  EXPECT_THAT(mistake({{"dtype", "int32"}}), HasSubstr("ops[0].dtype is \"int32\"; allowed: bf16, fp16, fp32 "));
  EXPECT_THAT(mistake({{"dropout", true}}), HasSubstr("ops[0].dropout"));
}

}  // namespace
}  // namespace hstujit
