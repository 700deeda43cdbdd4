// norm_attention: what it takes, what its steps are, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/operators/norm_attention/norm_attention_specs.h"
#include "tests/operators/program_steps.h"

namespace hstujit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "x bf16(L, 64)".
std::vector<std::string> arguments_of(const OpSpec& spec, Direction direction) {
  std::vector<std::string> texts;
  for (const Argument& argument : spec.signature(direction)) {
    texts.push_back(argument.kind != ArgumentKind::kTensor
                        ? argument.name
                        : fmt::format("{} {}{}", argument.name, to_string(argument.dtype), shape_text(argument)));
  }
  return texts;
}

TEST(NormAttention, TakesWhatItsStepsTake) {
  const OpSpecPtr spec = norm_attention({{"num_targets", true}, {"rab_heads", 1}});
  EXPECT_THAT(arguments_of(*spec, Direction::kForward),
              ElementsAre("x bf16(L, 64)", "weight fp32(64)", "bias fp32(64)", "eps", "seq_offsets int64(B+1)",
                          "num_targets int64(B)", "rab bf16(B, 1, max_seq_len, max_seq_len)", "max_seq_len", "alpha",
                          "scaling_seqlen", "out bf16(L, 2, 16)"));
  EXPECT_THAT(arguments_of(*spec, Direction::kBackward),
              ElementsAre("x bf16(L, 64)", "weight fp32(64)", "bias fp32(64)", "eps", "dout bf16(L, 2, 16)",
                          "seq_offsets int64(B+1)", "num_targets int64(B)", "rab bf16(B, 1, max_seq_len, max_seq_len)",
                          "max_seq_len", "alpha", "scaling_seqlen", "drab bf16(B, 1, max_seq_len, max_seq_len)",
                          "dx bf16(L, 64)", "dweight fp32(64)", "dbias fp32(64)"));
}

TEST(NormAttention, StepsShareColumnsOfOneMatrix) {
  const OpSpecPtr spec = norm_attention({{"norm", "rms_norm"}});
  EXPECT_THAT(
      steps_of(*spec->program(Direction::kForward)),
      ElementsAre("rms_norm forward: out=normed", "hstu_attention forward: q=normed[32] k=normed[48] v=normed[0]"));
  EXPECT_THAT(steps_of(*spec->program(Direction::kBackward)),
              ElementsAre("rms_norm forward: out=normed",
                          "hstu_attention backward: q=normed[32] k=normed[48] v=normed[0] dq=dnormed[32] "
                          "dk=dnormed[48] dv=dnormed[0]",
                          "rms_norm backward: dout=dnormed"));
}

// So kernels and tuning records are shared with whoever uses the operators alone.
TEST(NormAttention, StepsAreTheOperatorsThemselves) {
  const OpSpecPtr spec = norm_attention({{"dtype", "fp16"}, {"max_attn_len", 100}, {"bias", false}, {"alignment", 8}});
  const Program& program = *spec->program(Direction::kForward);
  const auto key_of = [](const nlohmann::ordered_json& json) { return key_text(**parse_op_spec(json, "")); };
  EXPECT_EQ(key_text(*program.steps[0].spec),
            key_of({{"op", "layer_norm"}, {"width", 64}, {"dtype", "fp16"}, {"bias", false}, {"alignment", 8}}));
  EXPECT_EQ(key_text(*program.steps[1].spec), key_of({{"op", "hstu_attention"},
                                                      {"heads", 2},
                                                      {"attn_dim", 8},
                                                      {"hidden_dim", 16},
                                                      {"dtype", "fp16"},
                                                      {"max_attn_len", 100},
                                                      {"alignment", 8}}));
}

TEST(NormAttention, WritesItselfAndReadsIt) {
  for (const nlohmann::ordered_json& more :
       std::vector<nlohmann::ordered_json>{{{"weight", false}, {"bias", false}, {"weight_dtype", "bf16"}},
                                           {{"norm", "rms_norm"}, {"causal", false}, {"max_attn_len", -1}},
                                           {{"rab_heads", 2}, {"drab", false}}}) {
    const OpSpecPtr spec = norm_attention(more);
    const auto again = parse_op_spec(spec->to_json(), "");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ((*again)->to_json(), spec->to_json());
    const auto from_key = parse_op_spec(nlohmann::ordered_json::parse(key_text(*spec)), "");
    ASSERT_TRUE(from_key.ok()) << from_key.status().message();
    EXPECT_EQ((*from_key)->to_json(), spec->to_json());
  }
  EXPECT_EQ(key_text(*norm_attention({{"norm", "rms_norm"}})),
            key_text(*norm_attention({{"norm", "rms_norm"}, {"bias", false}})));
}

TEST(NormAttention, MistakesAreSentences) {
  const auto mistake = [](const nlohmann::ordered_json& more) {
    nlohmann::ordered_json json = {{"op", "norm_attention"}, {"heads", 2}, {"attn_dim", 8}, {"hidden_dim", 16}};
    json.update(more);
    return std::string(parse_op_spec(json, "ops[0]").status().message());
  };
  EXPECT_THAT(mistake({{"norm", "batch_norm"}}),
              HasSubstr("ops[0].norm is \"batch_norm\"; allowed: layer_norm, rms_norm"));
  EXPECT_EQ(mistake({{"norm", "rms_norm"}, {"bias", true}}),
            "ops[0].bias is true, but rms_norm has no bias; allowed: false");
  EXPECT_EQ(mistake({{"heads", 512}}), "") << "16384 columns";
  EXPECT_THAT(mistake({{"heads", 513}}), HasSubstr("ops[0].heads is 513, so rows have 16416 columns v, q and k"));
  EXPECT_THAT(mistake({{"weight_dtype", "fp16"}}), HasSubstr("ops[0].weight_dtype is fp16, but rows are bf16"));
  EXPECT_THAT(mistake({{"attn_dim", 257}}), HasSubstr("ops[0].attn_dim is 257"));
}

TEST(NormAttention, WorkCountsItsOwnTensorsOnly) {
  const OpSpecPtr spec = norm_attention();
  const Program& program = *spec->program(Direction::kForward);
  const Lengths lengths{{3, 0, 7}, {}, 7, {}};
  const Work work = spec->work(Direction::kForward, lengths);
  double flops = 0;
  for (const ProgramStep& step : program.steps) flops += step.spec->work(step.direction, lengths).flops;
  EXPECT_EQ(work.flops, flops);
  EXPECT_EQ(work.bytes, 10 * 64 * 2 + 2 * 64 * 4 + 3 * 8 + 10 * 32 * 2);
}

}  // namespace
}  // namespace hstujit
