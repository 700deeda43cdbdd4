// stu_stack: what it takes, that it is layers in order, its gradients, and what is refused.
#include <gmock/gmock.h>

#include <set>

#include "compiler/spec/rounding.h"
#include "tests/operators/program_steps.h"
#include "tests/operators/stu_layer/stu_gradient.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

constexpr const char* kStack = "stu_stack";

OpSpecPtr stack(int64_t layers, const Json& more = Json::object()) {
  Json json = {{"layers", layers}};
  json.update(more);
  return stu(kStack, json);
}

std::string stack_arguments(const OpSpec& spec, Direction direction) {
  std::string text;
  for (const Argument& argument : spec.signature(direction))
    text += argument.name + (argument.kind == ArgumentKind::kTensor ? shape_text(argument) : "") + " ";
  return text;
}

TEST(StuStack, TakesStackedWeights) {
  const OpSpecPtr spec = stack(3, {{"dropout", true}});
  EXPECT_EQ(stack_arguments(*spec, Direction::kForward),
            "x(L, 24) input_norm_weight(3, 24) input_norm_bias(3, 24) uvqk_weight(3, 24, 96) uvqk_bias(3, 96) "
            "output_weight(3, 96, 24) output_norm_weight(3, 32) output_norm_bias(3, 32) eps dropout_ratio seed offset "
            "seq_offsets(B+1) max_seq_len alpha scaling_seqlen out(L, 24) hidden_states(L, 48) attn(L, 96) ");
  EXPECT_EQ(stack_arguments(*spec, Direction::kBackward),
            "x(L, 24) input_norm_weight(3, 24) input_norm_bias(3, 24) uvqk_weight(3, 24, 96) uvqk_bias(3, 96) "
            "output_weight(3, 96, 24) output_norm_weight(3, 32) output_norm_bias(3, 32) hidden_states(L, 48) "
            "attn(L, 96) dout(L, 24) eps dropout_ratio seed offset seq_offsets(B+1) max_seq_len alpha scaling_seqlen "
            "doutput_weight(3, 96, 24) doutput_norm_weight(3, 32) doutput_norm_bias(3, 32) duvqk_weight(3, 24, 96) "
            "duvqk_bias(3, 96) dx(L, 24) dinput_norm_weight(3, 24) dinput_norm_bias(3, 24) ");
}

// Each layer draws from the one seed, at an offset of its own.
TEST(StuStack, TakesTheSeedInATensor) {
  const OpSpecPtr spec = stack(3, {{"dropout", true}, {"seed_tensor", true}});
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    EXPECT_THAT(stack_arguments(*spec, direction), testing::HasSubstr(" eps dropout_ratio seed_tensor(1) offset "));
    const Program& program = *spec->program(direction);
    std::set<double> offsets;
    for (const ProgramStep& step : program.steps) {
      const int seed = find_argument(step.signature, "seed_tensor"), offset = find_argument(step.signature, "offset");
      if (seed < 0) continue;
      EXPECT_EQ(program.value(step.operands[static_cast<size_t>(seed)].value).name, "seed_tensor");
      offsets.insert(step.operands[static_cast<size_t>(offset)].number);
    }
    EXPECT_EQ(offsets, (std::set<double>{0, 1, 2}));
  }
}

TEST(StuStack, KeepsInputsOfLayersAlone) {
  EXPECT_EQ(stack_arguments(*stack(3, {{"recompute_attn", true}, {"norm", "rms_norm"}, {"uvqk_bias", false}}),
                            Direction::kForward),
            "x(L, 24) input_norm_weight(3, 24) uvqk_weight(3, 24, 96) output_weight(3, 96, 24) "
            "output_norm_weight(3, 32) eps seq_offsets(B+1) max_seq_len alpha scaling_seqlen out(L, 24) "
            "hidden_states(L, 48) ");
  const OpSpecPtr all = stack(2, {{"recompute_uvqk", false}, {"recompute_normed_x", false}, {"recompute_y", false}});
  EXPECT_THAT(stack_arguments(*all, Direction::kForward),
              HasSubstr("out(L, 24) hidden_states(L, 24) attn(L, 64) uvqk(L, 192) normed_x(L, 48) y(L, 192) "));
  EXPECT_THAT(stack_arguments(*stack(3, {{"training", false}}), Direction::kForward),
              HasSubstr("scaling_seqlen out(L, 24) "));
  EXPECT_FALSE(stack(3, {{"training", false}})->supports(Direction::kBackward));
}

TEST(StuStack, LayersShareKernels) {
  const OpSpecPtr one = stack(1), five = stack(5);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    const auto names = [&](const OpSpec& spec) {
      std::set<std::string> found;
      for (const ProgramStep& step : spec.program(direction)->steps) found.insert(step.name);
      return found;
    };
    EXPECT_EQ(names(*five), names(*one));
    EXPECT_EQ(five->program(direction)->steps.size(), 5 * one->program(direction)->steps.size());
    EXPECT_EQ(steps_of(*one->program(direction)).size(), steps_of(*stu("stu_layer")->program(direction)).size());
  }
}

TEST(StuStack, LayersDrawDifferentNumbers) {
  const OpSpecPtr spec = stack(2, {{"dropout", true}});
  std::vector<double> added;
  for (const ProgramStep& step : spec->program(Direction::kForward)->steps) {
    const int offset = find_argument(step.signature, "offset");
    if (offset >= 0) added.push_back(step.operands[static_cast<size_t>(offset)].number);
  }
  EXPECT_EQ(added, (std::vector<double>{0, 1}));
}

class StackCall {
 public:
  StackCall(OpSpecPtr spec, Direction direction) : spec_(std::move(spec)), direction_(direction) {
    signature_ = spec_->signature(direction);
    values_ = spec_->make_inputs(direction, lengths_, 3);
  }
  HostValue& operator[](const std::string& name) {
    return values_[static_cast<size_t>(find_argument(signature_, name))];
  }
  const Signature& signature() const { return signature_; }
  void run() { spec_->reference(direction_, lengths_, values_); }

 private:
  OpSpecPtr spec_;
  Direction direction_;
  Signature signature_;
  Lengths lengths_{{5, 0, 3}, {}, 5, {}};
  std::vector<HostValue> values_;
};

// Fills in what a layer takes of the stack's weights, and what else the stack is given.
void take_layer(StackCall& call, StackCall& stack, int64_t layer, int64_t layers) {
  for (const Argument& argument : call.signature()) {
    if (argument.role != ArgumentRole::kInput || find_argument(stack.signature(), argument.name) < 0) continue;
    const HostValue& whole = stack[argument.name];
    if (argument.name.find("weight") == std::string::npos && argument.name.find("bias") == std::string::npos) {
      if (argument.name != "x" && argument.name != "dout" && argument.name != "attn") call[argument.name] = whole;
      continue;
    }
    const auto count = static_cast<std::ptrdiff_t>(whole.tensor.reals.size()) / layers;
    call[argument.name].tensor.reals.assign(whole.tensor.reals.begin() + layer * count,
                                            whole.tensor.reals.begin() + (layer + 1) * count);
  }
}

void expect_equal(const std::vector<double>& one, const double* other, const std::string& what) {
  for (size_t i = 0; i < one.size(); ++i) ASSERT_EQ(one[i], other[i]) << what << " " << i;
}

TEST(StuStack, IsLayersInOrder) {
  constexpr int64_t kLayers = 3;
  StackCall forward(stack(kLayers), Direction::kForward), backward(stack(kLayers), Direction::kBackward);
  forward.run();
  for (const Argument& argument : backward.signature()) {
    if (argument.role == ArgumentRole::kInput && find_argument(forward.signature(), argument.name) >= 0)
      backward[argument.name] = forward[argument.name];
  }
  backward.run();

  std::vector<HostValue> inputs = {forward["x"]}, attn;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    StackCall call(stu("stu_layer"), Direction::kForward);
    take_layer(call, forward, layer, kLayers);
    call["x"] = inputs.back();
    call.run();
    inputs.push_back(call["out"]);
    attn.push_back(call["attn"]);
    if (layer + 1 == kLayers) break;
    for (double& element : inputs.back().tensor.reals) element = round_to(DataType::kBf16, element);
  }
  expect_equal(forward["out"].tensor.reals, inputs.back().tensor.reals.data(), "out");

  HostValue dout = backward["dout"];
  for (int64_t layer = kLayers; layer-- > 0;) {
    StackCall call(stu("stu_layer"), Direction::kBackward);
    take_layer(call, backward, layer, kLayers);
    call["x"] = inputs[static_cast<size_t>(layer)];
    call["attn"] = attn[static_cast<size_t>(layer)];
    call["dout"] = dout;
    for (double& element : call["attn"].tensor.reals) element = round_to(DataType::kBf16, element);
    call.run();
    for (const char* const name : {"duvqk_weight", "duvqk_bias", "doutput_weight", "dinput_norm_bias"}) {
      const std::vector<double>& own = call[name].tensor.reals;
      expect_equal(own, backward[name].tensor.reals.data() + layer * static_cast<int64_t>(own.size()), name);
    }
    dout = call["dx"];
    if (layer == 0) break;
    for (double& element : dout.tensor.reals) element = round_to(DataType::kBf16, element);
  }
  expect_equal(backward["dx"].tensor.reals, dout.tensor.reals.data(), "dx");
}

TEST(StuStack, GradientIsThatOfForward) {
  const Json fp16 = {{"dtype", "fp16"}};
  Json again = fp16, kept = fp16;
  again.update({{"recompute_attn", true}, {"backward_head_groups", 2}, {"norm", "rms_norm"}});
  kept.update({{"recompute_normed_x", false}, {"recompute_uvqk", false}, {"recompute_y", false}, {"dropout", true}});
  expect_gradients(stack(2, fp16), 8);
  expect_gradients(stack(2, again), 6);
  expect_gradients(stack(3, kept), 8);
}

// Layers share both, so that their gradients are sums over layers: differences of forward know no layers.
TEST(StuStack, GradientsOfWhatLayersShareAddUp) {
  for (const char* const scale : {"rows", "scalar"}) {
    for (const int64_t layers : {1, 2, 3}) {
      const OpSpecPtr spec = stack(layers, {{"dtype", "fp32"}, {"rab_heads", 1}, {"attn_scale", scale}});
      StuGradient gradient(spec);
      for (const char* const shared : {"rab", "attn_scale"})
        EXPECT_LT(gradient.distance(shared), 0.1) << key_text(*spec) << " " << shared;
      std::string added_to;
      for (const ProgramStep& step : spec->program(Direction::kBackward)->steps) {
        for (const char* const name : {"drab_before", "dattn_scale_before"}) {
          const int at = find_argument(step.signature, name);
          if (at < 0) continue;
          added_to += spec->program(Direction::kBackward)->value(step.operands[static_cast<size_t>(at)].value).name;
        }
      }
      EXPECT_EQ(added_to, layers == 1 ? "" : layers == 2 ? "drabdattn_scale" : "drabdattn_scaledrabdattn_scale");
    }
  }
}

TEST(StuStack, WritesItselfAndReadsIt) {
  const OpSpecPtr spec = stack(4, {{"recompute_attn", true}, {"group_norm", true}});
  const auto again = parse_op_spec(Json::parse(key_text(*spec)), "");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ((*again)->to_json(), spec->to_json());
}

TEST(StuStack, MistakesAreSentences) {
  const auto mistake = [](const Json& more) {
    return std::string(parse_op_spec(stu_json(kStack, more), "ops[0]").status().message());
  };
  EXPECT_THAT(mistake(Json::object()), HasSubstr("ops[0].layers"));
  EXPECT_THAT(mistake({{"layers", 33}}), HasSubstr("ops[0].layers is 33; allowed:"));
  EXPECT_EQ(mistake({{"layers", 2}, {"backward_head_groups", 3}}),
            "ops[0].backward_head_groups is 3; allowed: divisors of 2, the heads");
  EXPECT_EQ(mistake({{"layers", 2}, {"backward_head_groups", 2}, {"rab_heads", 1}}),
            "ops[0].backward_head_groups is 2; allowed: 1 with rab_heads");
  EXPECT_EQ(mistake({{"layers", 2}, {"backward_head_groups", 2}, {"attn_scale", "rows"}}),
            "ops[0].backward_head_groups is 2; allowed: 1 with attn_scale");
}

}  // namespace
}  // namespace hstujit
