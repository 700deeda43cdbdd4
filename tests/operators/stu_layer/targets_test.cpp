// stu_layer with targets_only: what it takes, that it is the last rows of the whole layer, and its gradients.
#include <gmock/gmock.h>

#include "compiler/spec/config.h"
#include "compiler/spec/program.h"
#include "compiler/spec/sequence_rows.h"
#include "tests/operators/program_steps.h"
#include "tests/operators/stu_layer/stu_gradient.h"

namespace hstujit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OpSpecPtr targets(Json more = Json::object()) {
  more["targets_only"] = true;
  return stu("stu_layer", more);
}

std::string arguments_of_targets(const OpSpec& spec, Direction direction) {
  std::string text;
  for (const Argument& argument : spec.signature(direction)) {
    text += (argument.role == ArgumentRole::kOutput ? ">" : "") + argument.name;
    text += (argument.kind == ArgumentKind::kTensor ? shape_text(argument) : "") + " ";
  }
  return text;
}

TEST(StuTargets, TakesOffsetsOfTheLastRows) {
  const OpSpecPtr spec = targets({{"num_targets", true}, {"dropout", true}, {"row_numbers", true}});
  EXPECT_EQ(arguments_of_targets(*spec, Direction::kForward),
            "x(L, 24) input_norm_weight(24) input_norm_bias(24) uvqk_weight(24, 96) uvqk_bias(96) "
            "output_weight(96, 24) output_norm_weight(32) output_norm_bias(32) eps dropout_ratio seed offset "
            "row_numbers(Lq) seq_offsets(B+1) seq_offsets_q(B+1) num_targets(B) max_seq_len max_delta_len alpha "
            "scaling_seqlen >out(Lq, 24) >attn(Lq, 32) ");
  EXPECT_EQ(arguments_of_targets(*spec, Direction::kBackward),
            "x(L, 24) input_norm_weight(24) input_norm_bias(24) uvqk_weight(24, 96) uvqk_bias(96) "
            "output_weight(96, 24) output_norm_weight(32) output_norm_bias(32) attn(Lq, 32) dout(Lq, 24) eps "
            "dropout_ratio seed offset row_numbers(Lq) seq_offsets(B+1) seq_offsets_q(B+1) num_targets(B) max_seq_len "
            "max_delta_len alpha scaling_seqlen >doutput_weight(96, 24) >doutput_norm_weight(32) "
            ">doutput_norm_bias(32) >duvqk_weight(24, 96) >duvqk_bias(96) >dx(L, 24) >dinput_norm_weight(24) "
            ">dinput_norm_bias(24) ");
  for (const Direction direction : {Direction::kForward, Direction::kBackward})
    EXPECT_TRUE(every_row_counts(spec->signature(direction)));
  EXPECT_FALSE(targets({{"training", false}})->supports(Direction::kBackward));
}

TEST(StuTargets, KeysAndValuesAreOfAllRows) {
  const auto rows_of_steps = [](const OpSpec& spec, Direction direction) {
    std::string text;
    for (const ProgramStep& step : spec.program(direction)->steps) text += step.name + ":" + step.rows + " ";
    return text;
  };
  const OpSpecPtr spec = targets();
  EXPECT_EQ(rows_of_steps(*spec, Direction::kForward),
            "layer_norm:L addmm:L addmm_2:L take_last_rows:L addmm:Lq addmm_2:Lq delta_hstu_attention:L "
            "take_last_rows:L hstu_norm_mul_dropout:Lq addmm_3:Lq ");
  EXPECT_THAT(steps_of(*spec->program(Direction::kForward)),
              testing::Contains("delta_hstu_attention forward: q=uq[32] k=vk[32] v=vk[0] out=attn[0]"));
  const Lengths lengths{{50, 60}, {}, 60, {{std::string(kQueryAxis), {2, 3}}}};
  for (const Direction direction : {Direction::kForward, Direction::kBackward})
    EXPECT_LT(spec->work(direction, lengths).flops, 0.7 * stu("stu_layer")->work(direction, lengths).flops);
}

TEST(StuTargets, KeepsKeysAndValuesAlone) {
  const OpSpecPtr spec = targets({{"recompute_uvqk", false}});
  EXPECT_THAT(arguments_of_targets(*spec, Direction::kForward), HasSubstr(">attn(Lq, 32) >uvqk(L, 48)"));
  const std::vector<std::string> steps = steps_of(*spec->program(Direction::kBackward));
  EXPECT_THAT(steps, testing::Contains("delta_hstu_attention backward: q=uq[32] k=uvqk[32] v=uvqk[0] dout=dattn[0] "
                                       "dq=duq[32] dk=dvk[32] dv=dvk[0]"));
  const auto projections = [](const OpSpec& of) {
    return std::ranges::count_if(of.program(Direction::kBackward)->steps, [](const ProgramStep& step) {
      return step.name.starts_with("addmm") && step.rows == kSequenceAxis;
    });
  };
  EXPECT_EQ(projections(*spec) + 2, projections(*targets())) << "v and k are not projected again";
}

// The values of a call by name.
class TargetsCall {
 public:
  TargetsCall(OpSpecPtr spec, Direction direction, Lengths lengths)
      : spec_(std::move(spec)),
        direction_(direction),
        signature_(spec_->signature(direction)),
        lengths_(std::move(lengths)),
        values_(spec_->make_inputs(direction, lengths_, 3)) {}

  const Signature& signature() const { return signature_; }
  bool has(std::string_view name) const { return find_argument(signature_, name) >= 0; }
  HostValue& operator[](std::string_view name) { return values_[static_cast<size_t>(find_argument(signature_, name))]; }
  void run() { spec_->reference(direction_, lengths_, values_); }

 private:
  OpSpecPtr spec_;
  Direction direction_;
  Signature signature_;
  Lengths lengths_;
  std::vector<HostValue> values_;
};

// Sequences of 7, 3, 5 and 0 rows, the last 2, 0, 5 and 0 of which are wanted.
const Lengths kAll{{7, 3, 5, 0}, {2, 1, 3, 0}, 7, {}};
const Lengths kSome{{7, 3, 5, 0}, {2, 1, 3, 0}, 7, {{std::string(kQueryAxis), {2, 0, 5, 0}}}};
const std::vector<int64_t> kNumbers = {5, 6, 10, 11, 12, 13, 14};

std::vector<double> rows_of_targets(const HostTensor& tensor) {
  std::vector<double> rows;
  for (const int64_t row : kNumbers) {
    const auto begin = tensor.reals.begin() + row * tensor.shape[1];
    rows.insert(rows.end(), begin, begin + tensor.shape[1]);
  }
  return rows;
}

// Columns v and k of u, v, q and k: what a layer with targets_only keeps of them.
HostTensor columns_vk(const HostTensor& uvqk) {
  HostTensor kept;
  kept.shape = {uvqk.shape[0], 48};
  for (int64_t row = 0; row < uvqk.shape[0]; ++row) {
    const auto begin = uvqk.reals.begin() + row * 96;
    kept.reals.insert(kept.reals.end(), begin + 32, begin + 64);
    kept.reals.insert(kept.reals.end(), begin + 80, begin + 96);
  }
  return kept;
}

void expect_rows_of_targets(const Json& more) {
  SCOPED_TRACE(more.dump());
  Json unnumbered = more;
  unnumbered.erase("row_numbers");
  const OpSpecPtr all = stu("stu_layer", unnumbered), some = targets(more);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    TargetsCall whole(all, direction, kAll), part(some, direction, kSome);
    if (whole.has("uvqk") && direction == Direction::kBackward) {
      // Kept tensors are those of the call's other inputs, since u and q are projected again.
      TargetsCall before(all, Direction::kForward, kAll);
      for (const Argument& argument : before.signature()) {
        if (whole.has(argument.name)) before[argument.name] = whole[argument.name];
      }
      before.run();
      for (const char* const kept : {"uvqk", "normed_x"}) {
        if (whole.has(kept)) whole[kept] = before[kept];
      }
      part["uvqk_bias"] = before["uvqk_bias"];
    }
    // The gradient of the result is 0 in the other rows.
    if (whole.has("dout")) {
      std::vector<double>& dout = whole["dout"].tensor.reals;
      for (size_t i = 0; i < dout.size(); ++i) {
        if (std::ranges::find(kNumbers, static_cast<int64_t>(i / 24)) == kNumbers.end()) dout[i] = 0;
      }
    }
    for (const Argument& argument : part.signature()) {
      if (argument.role != ArgumentRole::kInput || !whole.has(argument.name)) continue;
      part[argument.name] = whole[argument.name];
      if (argument.name == "uvqk") part["uvqk"].tensor = columns_vk(whole["uvqk"].tensor);
      const bool last = argument.kind == ArgumentKind::kTensor && argument.shape[0].symbol == kQueryAxis;
      if (!last) continue;
      HostTensor& tensor = part[argument.name].tensor;
      tensor.reals = rows_of_targets(tensor);
      tensor.shape[0] = static_cast<int64_t>(kNumbers.size());
    }
    if (part.has("row_numbers")) part["row_numbers"].tensor.integers = kNumbers;
    whole.run();
    part.run();
    for (const Argument& argument : part.signature()) {
      if (argument.role != ArgumentRole::kOutput) continue;
      const HostTensor from = argument.name == "uvqk" ? columns_vk(whole["uvqk"].tensor) : whole[argument.name].tensor,
                       &to = part[argument.name].tensor;
      if (direction == Direction::kForward) {
        const bool last = argument.shape[0].symbol == kQueryAxis;
        EXPECT_EQ(to.reals, last ? rows_of_targets(from) : from.reals) << argument.name;
        continue;
      }
      ASSERT_EQ(to.shape, from.shape) << argument.name;
      double squares = 0, distance = 0;
      for (size_t i = 0; i < to.reals.size(); ++i) {
        squares += from.reals[i] * from.reals[i];
        distance += (to.reals[i] - from.reals[i]) * (to.reals[i] - from.reals[i]);
      }
      // Sums of several products are rounded between them.
      EXPECT_LE(distance, 1e-12 * squares) << argument.name;
      EXPECT_GT(squares, 0) << argument.name;
    }
  }
}

TEST(StuTargets, AreTheLastRowsOfALayer) {
  for (Json more :
       {Json::object(), Json({{"dropout", true}, {"row_numbers", true}}),
        Json({{"dropout", true}, {"row_numbers", true}, {"seed_tensor", true}}),
        Json({{"norm", "rms_norm"}, {"uvqk_bias", false}, {"group_norm", true}}),
        Json({{"silu_uvqk", true}, {"residual", false}}), Json({{"recompute_normed_x", false}, {"recompute_y", false}}),
        Json({{"recompute_attn", true}, {"concat_u", false}, {"concat_x", false}}), Json({{"recompute_uvqk", false}}),
        Json({{"recompute_uvqk", false}, {"silu_uvqk", true}}),
        Json({{"recompute_uvqk", false}, {"recompute_normed_x", false}, {"recompute_attn", true}}),
        Json({{"max_attn_len", 3}, {"contextual_seq_len", 2}})}) {
    more.update({{"dtype", "fp32"}, {"num_targets", true}});
    expect_rows_of_targets(more);
  }
  expect_rows_of_targets({{"dtype", "fp32"}, {"rab_heads", 2}});
}

TEST(StuTargets, GeneratedCallsHaveTheRowsOfTheConfig) {
  const auto instance = parse_instance(stu_json("stu_layer", {{"name", "t"},
                                                              {"targets_only", true},
                                                              {"max_seq_len", 16},
                                                              {"delta_len", {4, 1, 2}},
                                                              {"lengths", {16, 3, 9}}}),
                                       "test", "");
  ASSERT_TRUE(instance.ok()) << instance.status().message();
  const Lengths lengths = make_lengths(*instance, 16);
  EXPECT_EQ(lengths.rows_of(kQueryAxis), (std::vector<int64_t>{4, 1, 2}));
  EXPECT_EQ(lengths.rows, (std::vector<int64_t>{16, 3, 9}));
}

TEST(StuTargets, EqualMeaningsHaveOneForm) {
  EXPECT_EQ(key_text(*targets({{"backward_head_groups", 2}})), key_text(*targets()));
  EXPECT_EQ(key_text(*targets({{"row_numbers", true}})), key_text(*targets()));
  EXPECT_NE(key_text(*targets()), key_text(*stu("stu_layer")));
}

TEST(StuTargets, MistakesAreSentences) {
  EXPECT_EQ(parse_instance(stu_json("stu_layer", {{"name", "t"}, {"max_seq_len", 16}, {"delta_len", 4}}), "test", "")
                .status()
                .message(),
            "test.delta_len is 4, but the result has all rows; allowed: with targets_only=true");
  EXPECT_THAT(
      std::string(
          parse_op_spec(stu_json("stu_stack", {{"layers", 2}, {"targets_only", true}}), "ops[0]").status().message()),
      HasSubstr("ops[0].targets_only"));
}

}  // namespace
}  // namespace hstujit
