// stu_layer and its halves: what they take, what their steps are, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "compiler/spec/config.h"
#include "compiler/spec/sequence_rows.h"
#include "tests/operators/program_steps.h"
#include "tests/operators/stu_layer/stu_specs.h"

namespace hstujit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// "x(L, 24) ... -> out(L, 24)"
std::string stu_arguments(const OpSpec& spec, Direction direction) {
  std::string inputs, outputs;
  for (const Argument& argument : spec.signature(direction)) {
    std::string& text = argument.role == ArgumentRole::kInput ? inputs : outputs;
    text += argument.name + (argument.kind == ArgumentKind::kTensor ? shape_text(argument) : "") + " ";
  }
  return inputs + "-> " + outputs;
}

TEST(StuLayer, TakesRowsAndWeights) {
  const OpSpecPtr spec = stu("stu_layer", {{"num_targets", true}, {"dropout", true}});
  EXPECT_EQ(stu_arguments(*spec, Direction::kForward),
            "x(L, 24) input_norm_weight(24) input_norm_bias(24) uvqk_weight(24, 96) uvqk_bias(96) "
            "output_weight(96, 24) output_norm_weight(32) output_norm_bias(32) eps dropout_ratio seed offset "
            "seq_offsets(B+1) num_targets(B) max_seq_len alpha scaling_seqlen -> out(L, 24) attn(L, 32) ");
  EXPECT_EQ(stu_arguments(*spec, Direction::kBackward),
            "x(L, 24) input_norm_weight(24) input_norm_bias(24) uvqk_weight(24, 96) uvqk_bias(96) "
            "output_weight(96, 24) output_norm_weight(32) output_norm_bias(32) attn(L, 32) dout(L, 24) eps "
            "dropout_ratio seed offset seq_offsets(B+1) num_targets(B) max_seq_len alpha scaling_seqlen -> "
            "doutput_weight(96, 24) doutput_norm_weight(32) doutput_norm_bias(32) duvqk_weight(24, 96) duvqk_bias(96) "
            "dx(L, 24) dinput_norm_weight(24) dinput_norm_bias(24) ");
  EXPECT_TRUE(every_row_counts(spec->signature(Direction::kForward)));
}

TEST(StuLayer, ReadsTheSeedOfATensorOnce) {
  const Lengths lengths{{3, 7}, {}, 7, {}};
  const OpSpecPtr number = stu("stu_layer", {{"dropout", true}}),
                  tensor = stu("stu_layer", {{"dropout", true}, {"seed_tensor", true}});
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    EXPECT_EQ(tensor->work(direction, lengths).bytes - number->work(direction, lengths).bytes, sizeof(int64_t));
  }
}

TEST(StuLayer, ForwardGivesWhatBackwardDoesNotComputeAgain) {
  const OpSpecPtr spec = stu("stu_layer", {{"recompute_normed_x", false},
                                           {"recompute_uvqk", false},
                                           {"recompute_y", false},
                                           {"norm", "rms_norm"},
                                           {"uvqk_bias", false}});
  EXPECT_EQ(stu_arguments(*spec, Direction::kForward),
            "x(L, 24) input_norm_weight(24) uvqk_weight(24, 96) output_weight(96, 24) output_norm_weight(32) eps "
            "seq_offsets(B+1) max_seq_len alpha scaling_seqlen -> "
            "out(L, 24) attn(L, 32) uvqk(L, 96) normed_x(L, 24) y(L, 96) ");
  EXPECT_EQ(stu_arguments(*spec, Direction::kBackward),
            "x(L, 24) input_norm_weight(24) uvqk_weight(24, 96) output_weight(96, 24) output_norm_weight(32) "
            "normed_x(L, 24) uvqk(L, 96) attn(L, 32) y(L, 96) dout(L, 24) eps seq_offsets(B+1) max_seq_len alpha "
            "scaling_seqlen -> doutput_weight(96, 24) doutput_norm_weight(32) duvqk_weight(24, 96) dx(L, 24) "
            "dinput_norm_weight(24) ");
}

TEST(StuLayer, StepsShareColumnsOfOneProjection) {
  const OpSpecPtr spec = stu("stu_layer");
  EXPECT_THAT(steps_of(*spec->program(Direction::kForward)),
              ElementsAre("layer_norm forward: weight=input_norm_weight bias=input_norm_bias",
                          "addmm forward: input=uvqk_bias mat1=out mat2=uvqk_weight alpha=1 beta=1 out=uvqk",
                          "hstu_attention forward: q=uvqk[64] k=uvqk[80] v=uvqk[32] out=attn[0]",
                          "hstu_norm_mul_dropout forward: x=attn u=uvqk[0] weight=output_norm_weight "
                          "bias=output_norm_bias out=y",
                          "addmm_2 forward: input=x mat1=y mat2=output_weight alpha=1 beta=1"));
  EXPECT_THAT(
      steps_of(*spec->program(Direction::kBackward)),
      ElementsAre(
          "layer_norm forward: weight=input_norm_weight bias=input_norm_bias out=dx",
          "addmm_3 forward: input=uvqk_bias[0] mat1=dx mat2=uvqk_weight[0] alpha=1 beta=1 out=duvqk[0]",
          "hstu_norm_mul_dropout forward: x=attn u=duvqk[0] weight=output_norm_weight bias=output_norm_bias out=y",
          "addmm_wgrad forward: mat1=y alpha=1 out=doutput_weight",
          "addmm_4 forward: mat1=dout mat2=output_weight alpha=1 out=dy",
          "hstu_norm_mul_dropout backward: x=attn u=duvqk[0] dout=dy weight=output_norm_weight bias=output_norm_bias "
          "dx=duvqk[96] du=duvqk[0] dweight=doutput_norm_weight dbias=doutput_norm_bias",
          "addmm_5 forward: input=uvqk_bias[32] mat1=dx mat2=uvqk_weight[32] alpha=1 beta=1 out=vqk[0]",
          "hstu_attention backward: q=vqk[32] k=vqk[48] v=vqk[0] dout=duvqk[96] dq=duvqk[64] dk=duvqk[80] "
          "dv=duvqk[32]",
          "addmm_6 forward: mat1=duvqk[0] mat2=uvqk_weight alpha=1 out=duvqk[96]",
          "addmm_wgrad_2 forward: mat1=dx dout=duvqk[0] alpha=1 beta=1 out=duvqk_weight dbias=duvqk_bias",
          "layer_norm_2 backward: dout=duvqk[96] dresidual=dout weight=input_norm_weight dweight=dinput_norm_weight "
          "dbias=dinput_norm_bias"));
}

// The product applies silu where nothing needs what it was applied to.
TEST(StuLayer, SiluOfAllOfTheProjection) {
  const auto steps = [](Json more, Direction direction) {
    more.update({{"silu_uvqk", true}, {"uvqk_bias", false}, {"residual", false}});
    return steps_of(*stu("stu_layer", more)->program(direction));
  };
  const std::vector<std::string> forward = {
      "layer_norm forward: weight=input_norm_weight bias=input_norm_bias",
      "addmm forward: mat1=out mat2=uvqk_weight alpha=1 out=uvqk",
      "hstu_attention forward: q=uvqk[64] k=uvqk[80] v=uvqk[32] out=attn[0]",
      "hstu_norm_mul_dropout forward: x=attn u=uvqk[0] weight=output_norm_weight bias=output_norm_bias out=y",
      "addmm_2 forward: mat1=y mat2=output_weight alpha=1"};
  EXPECT_EQ(steps(Json::object(), Direction::kForward), forward);
  EXPECT_THAT(
      steps({{"recompute_uvqk", false}}, Direction::kForward),
      ElementsAre(
          forward[0], forward[1], "silu forward: x=uvqk out=activated",
          "hstu_attention forward: q=activated[64] k=activated[80] v=activated[32] out=attn[0]",
          "hstu_norm_mul_dropout forward: x=attn u=activated[0] weight=output_norm_weight bias=output_norm_bias out=y",
          forward[4]));
  EXPECT_THAT(
      steps(Json::object(), Direction::kBackward),
      ElementsAre(
          "layer_norm forward: weight=input_norm_weight bias=input_norm_bias out=dx",
          "addmm_3 forward: mat1=dx mat2=uvqk_weight alpha=1 out=uvqk", "silu forward: x=uvqk[0] out=duvqk[0]",
          "hstu_norm_mul_dropout forward: x=attn u=duvqk[0] weight=output_norm_weight bias=output_norm_bias out=y",
          "addmm_wgrad forward: mat1=y alpha=1 out=doutput_weight",
          "addmm_4 forward: mat1=dout mat2=output_weight alpha=1 out=dy",
          "hstu_norm_mul_dropout backward: x=attn u=duvqk[0] dout=dy weight=output_norm_weight bias=output_norm_bias "
          "dx=duvqk[96] du=duvqk[0] dweight=doutput_norm_weight dbias=doutput_norm_bias",
          "silu_2 forward: x=uvqk[32] out=vqk[0]",
          "hstu_attention backward: q=vqk[32] k=vqk[48] v=vqk[0] dout=duvqk[96] dq=duvqk[64] dk=duvqk[80] "
          "dv=duvqk[32]",
          "silu_3 backward: x=uvqk[0] dout=duvqk[0] dx=uvqk[0]",
          "addmm_5 forward: mat1=uvqk[0] mat2=uvqk_weight alpha=1 out=duvqk[96]",
          "addmm_wgrad_2 forward: mat1=dx dout=uvqk[0] alpha=1 out=duvqk_weight",
          "layer_norm backward: dout=duvqk[96] weight=input_norm_weight dweight=dinput_norm_weight "
          "dbias=dinput_norm_bias"));
}

// With heads as wide in q and k as in v.
TEST(StuLayer, WhatIsProjectedLiesWhereVQAndKAndTheirGradientsDo) {
  const std::vector<std::string> steps = steps_of(*stu("stu_layer", {{"attn_dim", 16}})->program(Direction::kBackward));
  EXPECT_THAT(steps[2], HasSubstr(" out=duvqk[32]"));
  EXPECT_EQ(steps[3], "addmm_wgrad forward: mat1=duvqk[32] alpha=1 out=doutput_weight");
  EXPECT_THAT(steps[4], HasSubstr(" out=duvqk[32]"));
  EXPECT_THAT(steps[5], HasSubstr(" dout=duvqk[32]"));
  const std::vector<std::string> forward =
      steps_of(*stu("stu_layer", {{"attn_dim", 16}})->program(Direction::kForward));
  EXPECT_THAT(forward[3], HasSubstr(" out=uvqk[32]")) << "v, q and k were read";
  EXPECT_THAT(forward[4], HasSubstr(" mat1=uvqk[32]"));
}

// v, q and k of a group lie in the columns of the next group's gradients, those of the last one in columns of dattn
// that were read, where there are as many, and else in a matrix of their own.
TEST(StuLayer, AttentionOfGroupsOfHeads) {
  const OpSpecPtr spec = stu("stu_layer", {{"backward_head_groups", 2}, {"width", 16}});
  const std::vector<std::string> steps = steps_of(*spec->program(Direction::kBackward));
  EXPECT_THAT(
      std::vector(steps.begin() + 6, steps.begin() + 14),
      ElementsAre("addmm_5 forward: input=uvqk_bias[32] mat1=dx mat2=uvqk_weight[32] alpha=1 beta=1 out=duvqk[48]",
                  "addmm_6 forward: input=uvqk_bias[64] mat1=dx mat2=uvqk_weight[64] alpha=1 beta=1 out=duvqk[72]",
                  "addmm_6 forward: input=uvqk_bias[80] mat1=dx mat2=uvqk_weight[80] alpha=1 beta=1 out=duvqk[88]",
                  "hstu_attention_2 backward: q=duvqk[72] k=duvqk[88] v=duvqk[48] dout=duvqk[96] dq=duvqk[64] "
                  "dk=duvqk[80] dv=duvqk[32]",
                  "addmm_5 forward: input=uvqk_bias[48] mat1=dx mat2=uvqk_weight[48] alpha=1 beta=1 out=duvqk[96]",
                  "addmm_6 forward: input=uvqk_bias[72] mat1=dx mat2=uvqk_weight[72] alpha=1 beta=1 out=vqk[0]",
                  "addmm_6 forward: input=uvqk_bias[88] mat1=dx mat2=uvqk_weight[88] alpha=1 beta=1 out=vqk[8]",
                  "hstu_attention_2 backward: q=vqk[0] k=vqk[8] v=duvqk[96] dout=duvqk[112] dq=duvqk[72] "
                  "dk=duvqk[88] dv=duvqk[48]"));
}

// Where rows of x are wider than dq of a group in fp32: all but the last group are projected at once, and the norm's
// result is made again behind a workspace that lay in its place.
TEST(StuLayer, AttentionOfGroupsHasItsWorkspaceInDx) {
  const OpSpecPtr spec = stu("stu_layer", {{"backward_head_groups", 2}, {"width", 64}});
  std::vector<std::string> steps;
  for (const std::string& step : steps_of(*spec->program(Direction::kBackward))) {
    const std::string kind = step.substr(0, step.find(':'));
    const size_t workspace = step.find(" workspace=");
    if (kind.starts_with("layer_norm forward")) steps.emplace_back("norm");
    if (step.find("mat1=dx") != std::string::npos)
      steps.emplace_back(kind.starts_with("addmm_wgrad") ? "wgrad" : "project");
    if (workspace != std::string::npos) steps.push_back("attention" + step.substr(workspace));
  }
  EXPECT_THAT(steps, ElementsAre("norm", "project", "project", "project", "project", "attention workspace=dx", "norm",
                                 "project", "project", "project", "attention workspace=dx", "norm", "wgrad"));
}

// Memory that held a workspace is written before it is read, and nothing is written to `dx` that nobody reads.
void expect_sound_workspaces(const Program& program, bool expected) {
  std::set<int> clobbered, unread;
  int workspaces = 0;
  for (const ProgramStep& step : program.steps) {
    SCOPED_TRACE(step.name);
    std::set<int> written;
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const int value = step.operands[i].value;
      if (step.operands[i].is_number()) continue;
      EXPECT_NE(value, step.workspace_in);
      if (step.signature[i].role == ArgumentRole::kOutput) {
        written.insert(value);
      } else {
        EXPECT_FALSE(clobbered.contains(value));
        unread.erase(value);
      }
    }
    for (const int value : written) {
      clobbered.erase(value);
      if (!program.is_temporary(value) && program.value(value).name == "dx") {
        EXPECT_FALSE(unread.contains(value)) << "was written in vain";
        unread.insert(value);
      }
    }
    if (step.workspace_in == ProgramStep::kOwnWorkspace) continue;
    EXPECT_FALSE(unread.contains(step.workspace_in)) << "was written in vain";
    clobbered.insert(step.workspace_in);
    ++workspaces;
  }
  for (const int value : clobbered) EXPECT_TRUE(program.is_temporary(value)) << "a result is never written";
  EXPECT_EQ(workspaces > 0, expected);
}

TEST(StuLayer, NothingReadsWhatAWorkspaceLayIn) {
  for (const char* op : {"stu_layer", "stu_stack"}) {
    for (const int choice : {0, 1, 2, 3, 4, 5, 6, 7}) {
      const bool normed_again = (choice & 1) != 0, uvqk_again = (choice & 2) != 0, attn_again = (choice & 4) != 0;
      for (const int groups : {1, 2, 4}) {
        SCOPED_TRACE(fmt::format("{} {} {}", op, choice, groups));
        Json json = {{"width", 128},
                     {"heads", 4},
                     {"recompute_normed_x", normed_again},
                     {"recompute_uvqk", uvqk_again},
                     {"recompute_attn", attn_again},
                     {"backward_head_groups", groups}};
        if (std::string_view(op) == "stu_stack") json["layers"] = 3;
        const OpSpecPtr spec = stu(op, json);
        expect_sound_workspaces(*spec->program(Direction::kBackward), groups > 1 || !normed_again);
      }
    }
  }
}

// Columns of each tensor between the steps of a backward direction. Heads are as wide in q and k as in v, 16, and x is
// narrower than all heads together.
std::map<std::string, int64_t> columns_between(Json more) {
  more.update({{"heads", 4}, {"attn_dim", 16}, {"hidden_dim", 16}, {"width", 40}});
  std::map<std::string, int64_t> columns;
  const OpSpecPtr spec = stu("stu_layer", more);
  for (const Argument& temporary : spec->program(Direction::kBackward)->temporaries)
    columns[temporary.name] = temporary.shape[1].bias;
  return columns;
}

TEST(StuLayer, MemoryOfBackward) {
  using Columns = std::map<std::string, int64_t>;
  EXPECT_EQ(columns_between({}), (Columns{{"duvqk", 5 * 64}, {"vqk", 3 * 64}}));
  EXPECT_EQ(columns_between({{"backward_head_groups", 2}}), (Columns{{"duvqk", 5 * 64}, {"vqk", 2 * 32}}));
  EXPECT_EQ(columns_between({{"backward_head_groups", 4}}), (Columns{{"duvqk", 5 * 64}}));
  EXPECT_EQ(columns_between({{"backward_head_groups", 4}, {"recompute_attn", true}}), (Columns{{"duvqk", 5 * 64}}));
  EXPECT_EQ(columns_between({{"recompute_attn", true}}), (Columns{{"duvqk", 5 * 64}, {"uvqk", 4 * 64}}));
  EXPECT_EQ(columns_between({{"recompute_uvqk", false}, {"recompute_y", false}}), (Columns{{"duvqk", 5 * 64}}));
}

TEST(StuLayer, AttentionOfGroupsIsComputedAgain) {
  const OpSpecPtr spec = stu("stu_layer", {{"backward_head_groups", 2}, {"recompute_attn", true}});
  const std::vector<std::string> steps = steps_of(*spec->program(Direction::kBackward));
  EXPECT_THAT(
      std::vector(steps.begin() + 2, steps.begin() + 6),
      ElementsAre("addmm_4 forward: input=uvqk_bias[32] mat1=dx mat2=uvqk_weight[32] alpha=1 beta=1 out=duvqk[32]",
                  "addmm_5 forward: input=uvqk_bias[64] mat1=dx mat2=uvqk_weight[64] alpha=1 beta=1 out=duvqk[64]",
                  "addmm_5 forward: input=uvqk_bias[80] mat1=dx mat2=uvqk_weight[80] alpha=1 beta=1 out=duvqk[80]",
                  "hstu_attention_2 forward: q=duvqk[64] k=duvqk[80] v=duvqk[32] out=duvqk[96]"));
}

TEST(StuLayer, WithoutTrainingNothingIsKept) {
  const Json serving = {{"training", false}, {"recompute_y", false}, {"recompute_uvqk", false}};
  for (const char* op : {"stu_layer", "hstu_preprocess_and_attention", "hstu_compute_output"}) {
    Json json = serving;
    if (std::string(op) == "hstu_compute_output") json.erase("recompute_uvqk");
    if (std::string(op) == "hstu_preprocess_and_attention") json.erase("recompute_y");
    const OpSpecPtr spec = stu(op, json);
    EXPECT_FALSE(spec->supports(Direction::kBackward));
    const std::string arguments = stu_arguments(*spec, Direction::kForward);
    EXPECT_THAT(arguments.substr(arguments.find("->")), testing::AnyOf("-> out(L, 24) ", "-> u(L, 32) attn(L, 2, 16) "))
        << op;
  }
}

TEST(StuLayer, HalvesTakeWhatLiesBetweenThem) {
  const OpSpecPtr first = stu("hstu_preprocess_and_attention"), second = stu("hstu_compute_output");
  EXPECT_EQ(stu_arguments(*first, Direction::kForward),
            "x(L, 24) input_norm_weight(24) input_norm_bias(24) uvqk_weight(24, 96) uvqk_bias(96) eps "
            "seq_offsets(B+1) max_seq_len alpha scaling_seqlen -> u(L, 32) attn(L, 2, 16) ");
  EXPECT_EQ(stu_arguments(*first, Direction::kBackward),
            "x(L, 24) input_norm_weight(24) input_norm_bias(24) uvqk_weight(24, 96) uvqk_bias(96) du(L, 32) "
            "dattn(L, 2, 16) eps seq_offsets(B+1) max_seq_len alpha scaling_seqlen -> duvqk_weight(24, 96) "
            "duvqk_bias(96) dx(L, 24) dinput_norm_weight(24) dinput_norm_bias(24) ");
  EXPECT_EQ(stu_arguments(*second, Direction::kForward),
            "attn(L, 32) u(L, 32) x(L, 24) output_norm_weight(32) output_norm_bias(32) output_weight(96, 24) eps -> "
            "out(L, 24) ");
  EXPECT_EQ(stu_arguments(*second, Direction::kBackward),
            "attn(L, 32) u(L, 32) output_norm_weight(32) output_norm_bias(32) output_weight(96, 24) dout(L, 24) eps -> "
            "doutput_weight(96, 24) dattn(L, 32) du(L, 32) doutput_norm_weight(32) doutput_norm_bias(32) ");
}

TEST(StuLayer, WritesItselfAndReadsIt) {
  for (const OpSpecPtr& spec :
       {stu("stu_layer", {{"group_norm", true}, {"recompute_y", false}, {"causal", false}, {"max_attn_len", -1}}),
        stu("hstu_preprocess_and_attention", {{"uvqk_bias", false}, {"typical_rows", 1000}}),
        stu("hstu_compute_output", {{"mul_u_activation", "sigmoid"}, {"concat_x", false}})}) {
    const auto again = parse_op_spec(Json::parse(key_text(*spec)), "");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ((*again)->to_json(), spec->to_json());
  }
}

// Every step on fp32 data that has a precision has that of the layer.
TEST(StuLayer, EveryStepHasItsPrecision) {
  for (const char* op : {"stu_layer", "hstu_preprocess_and_attention", "hstu_compute_output"}) {
    EXPECT_EQ(key_text(*stu(op, {{"precision", "ieee"}})), key_text(*stu(op))) << "of bf16 it says nothing";
    const OpSpecPtr spec = stu(op, {{"dtype", "fp32"}, {"precision", "ieee"}});
    EXPECT_EQ(spec->to_json()["precision"], "ieee");
    int products = 0;
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      for (const ProgramStep& step : spec->program(direction)->steps) {
        const Json json = step.spec->to_json();
        EXPECT_EQ(json["dtype"], "fp32") << json;
        EXPECT_EQ(json.value("precision", "ieee"), "ieee") << json;
        products += json.contains("precision") ? 1 : 0;
      }
    }
    EXPECT_GE(products, 3) << op;
  }
}

// The field that it stands for has no value: nothing follows from one.
TEST(StuLayer, ANameThatIsUnknownIsTheOnlyMistake) {
  for (const char* op : {"stu_layer", "hstu_preprocess_and_attention", "norm_attention"}) {
    Json json = stu_json(op, {{"name", "a"}, {"max_seq_len", 64}, {"num_heads", 4}});
    json.erase("heads");
    if (std::string(op) == "norm_attention") json.erase("width");
    const Status status = parse_instance(json, "test", "").status();
    EXPECT_THAT(status.message(), HasSubstr("num_heads (value 4) is not a known field of " + std::string(op) +
                                            ", did you mean \"heads\"?"));
    EXPECT_THAT(status.message(), Not(HasSubstr("heads is"))) << op;
  }
}

TEST(StuLayer, MistakesAreSentences) {
  const auto mistake = [](const std::string& op, const Json& more) {
    return std::string(parse_op_spec(stu_json(op, more), "ops[0]").status().message());
  };
  for (const char* op : {"stu_layer", "hstu_preprocess_and_attention"}) {
    EXPECT_THAT(mistake(op, {{"dtype", "int32"}}), HasSubstr("ops[0].dtype is \"int32\"; allowed: bf16, fp16, fp32 "));
    EXPECT_THAT(mistake(op, {{"alignment", 8}}), HasSubstr("ops[0].alignment is 8; allowed: 16 "));
    EXPECT_EQ(mistake(op, {{"heads", 1024}, {"hidden_dim", 32}}),
              "ops[0].heads is 1024, so the projection has 81920 columns u, v, q and k; allowed: at most 65536");
    EXPECT_THAT(mistake(op, {{"heads", 512}}), IsEmpty());
    EXPECT_THAT(mistake(op, {{"width", 16385}}), HasSubstr("ops[0].width is 16385; allowed:"));
  }
  EXPECT_EQ(mistake("stu_layer", {{"weight_dtype", "fp16"}}),
            "ops[0].weight_dtype is fp16, but rows are bf16; allowed: fp32, or the type of rows");
  EXPECT_EQ(mistake("hstu_compute_output", {{"heads", 65}, {"group_norm", true}}),
            "ops[0].heads is 65; allowed: at most 64 with group_norm");
  EXPECT_EQ(mistake("hstu_compute_output", {{"heads", 1024}, {"hidden_dim", 24}}),
            "ops[0].heads is 1024, so the attention output has 24576 columns; allowed: at most 16384");
}

}  // namespace
}  // namespace hstujit
