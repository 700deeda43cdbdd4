// Layers of any width: how the columns of their matrices are aligned, and their gradients.
#include <fmt/format.h>

#include "compiler/spec/gemm_spec.h"
#include "tests/operators/stu_layer/stu_gradient.h"

namespace hstujit {
namespace {

// Expects that dense arguments and temporaries are where a step's tensors may be.
void expect_aligned(const OpSpec& spec, Direction direction) {
  const Program& program = *spec.program(direction);
  for (const ProgramStep& step : program.steps) {
    for (size_t i = 0; i < step.signature.size(); ++i) {
      const Argument& argument = step.signature[i];
      const ProgramOperand& operand = step.operands[i];
      if (argument.kind != ArgumentKind::kTensor || operand.is_number()) continue;
      const Argument& value = program.value(operand.value);
      const auto element = static_cast<int64_t>(size_of(value.dtype));
      const std::string where = fmt::format("{} {} {}: {} of {}", spec.to_json().dump(), to_string(direction),
                                            step.name, argument.name, value.name);
      if (!value.shape.back().is_constant()) continue;
      EXPECT_EQ(operand.first_column * element % argument.alignment, 0) << where;
      // One of a vector is not strided, but one of those that are stacked is.
      if (argument.shape.size() == 1 && operand.index < 0) continue;
      int64_t stride = element;
      for (size_t axis = value.shape.size(); axis-- > 1 && value.shape[axis].is_constant();) {
        stride *= value.shape[axis].bias;
        EXPECT_EQ(stride % argument.alignment, 0) << where;
      }
    }
  }
}

const Json kSizes[] = {
    {{"width", 50}, {"heads", 1}, {"attn_dim", 50}, {"hidden_dim", 50}},
    {{"width", 50}, {"heads", 2}, {"attn_dim", 25}, {"hidden_dim", 25}},
    {{"width", 7}, {"heads", 2}, {"attn_dim", 3}, {"hidden_dim", 5}},
    {{"width", 64}, {"heads", 1}, {"attn_dim", 1}, {"hidden_dim", 8}},
    {{"width", 9}, {"heads", 2}, {"attn_dim", 32}, {"hidden_dim", 64}},
    {{"width", 1}, {"heads", 4}, {"attn_dim", 2}, {"hidden_dim", 1}},
};

Json sized(const Json& size, const Json& more, const std::string& op) {
  Json json = size;
  if (op == "hstu_compute_output") json.erase("attn_dim");
  json.update(more);
  return json;
}

TEST(StuWidths, StepsGetWhatTheyAreAlignedTo) {
  const Json kVariants[] = {
      Json::object(),
      {{"recompute_normed_x", false}, {"recompute_uvqk", false}, {"recompute_y", false}},
      {{"silu_uvqk", true}},
      {{"silu_uvqk", true}, {"recompute_uvqk", false}, {"concat_u", false}},
      {{"recompute_attn", true}, {"concat_x", false}},
      {{"training", false}},
  };
  for (const Json& size : kSizes) {
    for (const char* dtype : {"bf16", "fp32"}) {
      for (const Json& variant : kVariants) {
        for (const Json& more : {Json({{"op", "stu_layer"}}), Json({{"op", "stu_stack"}, {"layers", 3}}),
                                 Json({{"op", "stu_layer"}, {"targets_only", true}}),
                                 Json({{"op", "stu_layer"}, {"backward_head_groups", size["heads"]}})}) {
          Json json = size;
          json.update(more);
          json.update(variant);
          json["dtype"] = dtype;
          const OpSpecPtr spec = *parse_op_spec(json, "");
          EXPECT_EQ(spec->to_json(), (*parse_op_spec(spec->to_json(), ""))->to_json());
          expect_aligned(*spec, Direction::kForward);
          if (spec->supports(Direction::kBackward)) expect_aligned(*spec, Direction::kBackward);
        }
      }
      for (const char* op : {"hstu_preprocess_and_attention", "hstu_compute_uqvk", "hstu_compute_output"}) {
        const OpSpecPtr spec = stu(op, sized(size, {{"dtype", dtype}}, op));
        expect_aligned(*spec, Direction::kForward);
        expect_aligned(*spec, Direction::kBackward);
      }
      expect_aligned(*stu("cached_stu_layer", sized(size, {{"dtype", dtype}}, "")), Direction::kForward);
    }
  }
}

// Rows that TMA loads where their own columns allow it, whatever the width of x is.
TEST(StuWidths, AlignedHeadsStayAligned) {
  const OpSpecPtr spec = stu("stu_layer", {{"width", 50}, {"heads", 2}, {"attn_dim", 32}, {"hidden_dim", 64}});
  size_t attentions = 0;
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    for (const ProgramStep& step : spec->program(direction)->steps) {
      if (step.spec->op() != "hstu_attention") continue;
      EXPECT_EQ(step.spec->to_json()["alignment"], 16);
      ++attentions;
    }
  }
  EXPECT_EQ(attentions, 2u);
}

// Two heads of 25 columns: u, v, q and k begin at multiples of 4 bytes, a whole row of them at one of 16.
TEST(StuWidths, EachMatrixHasItsOwn) {
  const OpSpecPtr spec = stu("hstu_compute_uqvk", {{"width", 50}, {"attn_dim", 25}, {"hidden_dim", 25}});
  const ProgramStep& projection = spec->program(Direction::kForward)->steps[1];
  ASSERT_EQ(projection.spec->op(), "addmm");
  const auto alignment = [&](std::string_view name) {
    return projection.signature[static_cast<size_t>(find_argument(projection.signature, name))].alignment;
  };
  EXPECT_EQ(alignment("mat1"), 4);
  EXPECT_EQ(alignment("mat2"), 16);
  EXPECT_EQ(alignment("out"), 16);
  EXPECT_EQ(static_cast<const GemmSpec&>(*projection.spec).least_alignment(), 4);
}

TEST(StuWidthsGradient, IsThatOfForward) {
  for (const Json& size : {kSizes[1], kSizes[2], kSizes[3]}) {
    const Json fp16 = sized(size, {{"dtype", "fp16"}}, "");
    expect_gradients(stu("stu_layer", fp16), 8);
    Json kept = fp16, less = fp16, silu = fp16, stack = fp16;
    kept.update({{"recompute_normed_x", false}, {"recompute_uvqk", false}, {"recompute_y", false}});
    less.update({{"recompute_attn", true}, {"backward_head_groups", size["heads"]}});
    silu.update({{"silu_uvqk", true}, {"concat_u", false}});
    stack.update({{"layers", 2}});
    for (const Json& json : {kept, less, silu}) expect_gradients(stu("stu_layer", json), 8);
    expect_gradients(stu("stu_stack", stack), 8);
  }
}

}  // namespace
}  // namespace hstujit
