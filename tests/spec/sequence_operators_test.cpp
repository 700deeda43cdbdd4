// Specs of operators over sequences: rules, canonical form, signatures, work, and gradients of the references.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "compiler/spec/program.h"
#include "compiler/spec/sequence_operator.h"
#include "tests/row/row_cases.h"

namespace hstujit {
namespace {

constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackward};

Result<OpSpecPtr> parse(const char* json) { return parse_op_spec(Json::parse(json), "ops[0]"); }

std::string error_of(const char* json) {
  const auto spec = parse(json);
  return spec.ok() ? "" : spec.status().message();
}

std::string arguments_of(const char* json, Direction direction) {
  std::string text;
  for (const Argument& argument : (*parse(json))->signature(direction)) {
    text += (text.empty() ? "" : ", ") + argument.name;
    if (argument.kind == ArgumentKind::kTensor)
      text += " " + std::string(to_string(argument.dtype)) + shape_text(argument);
  }
  return text;
}

TEST(SequenceOperators, SayWhatIsWrong) {
  for (const char* op : {"concat_2d_jagged", "split_2d_jagged"}) {
    const Json json = {{"op", op}, {"width", 8}, {"dense_left", true}, {"dense_right", true}};
    EXPECT_EQ(error_of(json.dump().c_str()),
              "ops[0].dense_right is true, but dense_left is, too, and no offsets say how many sequences there are; "
              "allowed: false");
  }
  for (const char* op : {"add_positional_embeddings", "add_timestamp_positional_embeddings"}) {
    Json json = {{"op", op}, {"width", 8}, {"interleave_targets", true}};
    EXPECT_EQ(error_of(json.dump().c_str()),
              "ops[0].interleave_targets is true, but num_targets is false; allowed: false, or num_targets=true");
    json["num_targets"] = true;
    EXPECT_EQ(error_of(json.dump().c_str()), "");
  }
  EXPECT_EQ(error_of(R"({"op": "add_timestamp_positional_embeddings", "width": 8, "time_bucket_fn": "linear"})"),
            "ops[0].time_bucket_fn is \"linear\"; allowed: sqrt, log (how an age becomes a bucket)");
  EXPECT_EQ(error_of(R"({"op": "add_positional_embeddings", "width": 8, "dtype": "bf16", "weight_dtype": "fp16"})"),
            "ops[0].weight_dtype is fp16, but rows are bf16; allowed: fp32, or the type of rows");
  EXPECT_EQ(error_of(R"({"op": "dense_to_jagged", "width": 8, "dtype": "fp32", "alignment": 2})"),
            "ops[0].alignment is 2, but an element of fp32 has 4 bytes; allowed: a power of two from 4 to 16");
}

TEST(SequenceOperators, EqualMeaningsHaveOneForm) {
  for (const RowCase& row : sequence_cases({{"width", 100}})) {
    Json aligned = row.json;
    aligned["alignment"] = 8;  // rows of 100 elements of bf16 that follow one another begin at multiples of 8 bytes
    const auto spec = parse_op_spec(aligned, "");
    ASSERT_TRUE(spec.ok()) << spec.status().message();
    EXPECT_EQ(key_text(**spec), key_text(*row.spec));
    aligned["alignment"] = 4;
    EXPECT_NE(key_text(**parse_op_spec(aligned, "")), key_text(*row.spec));
    EXPECT_EQ((*parse_op_spec(row.spec->to_json(), ""))->to_json(), row.spec->to_json()) << row.name;
  }
}

TEST(SequenceOperators, Signatures) {
  const char* const positions =
      R"({"op": "add_positional_embeddings", "width": 8, "weight_dtype": "bf16", "num_targets": true})";
  EXPECT_EQ(arguments_of(positions, Direction::kForward),
            "seq_embeddings bf16(L, 8), position_embeddings_weight bf16(Kp, 8), alpha, seq_offsets int64(B+1), "
            "num_targets int64(B), out bf16(L, 8)");
  EXPECT_EQ(arguments_of(positions, Direction::kBackward),
            "dout bf16(L, 8), alpha, seq_offsets int64(B+1), num_targets int64(B), dseq_embeddings bf16(L, 8), "
            "dposition_embeddings_weight bf16(Kp, 8)");
  const char* const timestamps =
      R"({"op": "add_timestamp_positional_embeddings", "width": 8, "query_time": true, "offsets_dtype": "int32"})";
  EXPECT_EQ(arguments_of(timestamps, Direction::kForward),
            "seq_embeddings bf16(L, 8), position_embeddings_weight fp32(Kp, 8), timestamp_embeddings_weight fp32(Kt, "
            "8), alpha, time_bucket_increments, seq_offsets int32(B+1), timestamps int64(L), query_time int64(B), "
            "max_contextual_seq_len, out bf16(L, 8)");
  EXPECT_EQ(arguments_of(timestamps, Direction::kBackward),
            "dout bf16(L, 8), alpha, time_bucket_increments, seq_offsets int32(B+1), timestamps int64(L), query_time "
            "int64(B), max_contextual_seq_len, dseq_embeddings bf16(L, 8), dposition_embeddings_weight fp32(Kp, 8), "
            "dtimestamp_embeddings_weight fp32(Kt, 8)");
  const char* const add = R"({"op": "jagged_dense_broadcast_add", "width": 8})";
  EXPECT_EQ(arguments_of(add, Direction::kForward),
            "jagged bf16(L, 8), dense bf16(B, 8), seq_offsets int64(B+1), out bf16(L, 8)");
  EXPECT_EQ(arguments_of(add, Direction::kBackward), "dout bf16(L, 8), seq_offsets int64(B+1), ddense bf16(B, 8)");
}

// Their arguments are those of the partner, under the names of gradients.
TEST(SequenceOperators, SignaturesOfWhatMovesRows) {
  const char* const concat = R"({"op": "concat_2d_jagged", "width": 8, "prefix": true})";
  EXPECT_EQ(arguments_of(concat, Direction::kForward),
            "left bf16(Ll, 8), right bf16(Lr, 8), offsets_left int64(B+1), offsets_right int64(B+1), "
            "n_prefix_from_right, out bf16(L, 8)");
  EXPECT_EQ(arguments_of(concat, Direction::kBackward),
            "dout bf16(L, 8), offsets_left int64(B+1), offsets_right int64(B+1), n_prefix_from_right, dleft bf16(Ll, "
            "8), dright bf16(Lr, 8)");
  const char* const dense_left = R"({"op": "split_2d_jagged", "width": 8, "dense_left": true})";
  EXPECT_EQ(arguments_of(dense_left, Direction::kForward),
            "values bf16(L, 8), offsets_right int64(B+1), max_len_left, left bf16(B*max_len_left, 8), right bf16(Lr, "
            "8)");
  EXPECT_EQ(arguments_of(dense_left, Direction::kBackward),
            "dleft bf16(B*max_len_left, 8), dright bf16(Lr, 8), offsets_right int64(B+1), max_len_left, dvalues "
            "bf16(L, 8)");
  const char* const dense_right = R"({"op": "concat_2d_jagged", "width": 8, "dense_right": true})";
  EXPECT_EQ(arguments_of(dense_right, Direction::kForward),
            "left bf16(Ll, 8), right bf16(B*max_len_right, 8), offsets_left int64(B+1), max_len_right, out bf16(L, 8)");
  const char* const padded = R"({"op": "jagged_to_padded_dense", "width": 8, "padding_value": true})";
  EXPECT_EQ(arguments_of(padded, Direction::kForward),
            "values bf16(L, 8), padding_value, seq_offsets int64(B+1), max_len, out bf16(B*max_len, 8)");
  EXPECT_EQ(arguments_of(padded, Direction::kBackward),
            "dout bf16(B*max_len, 8), seq_offsets int64(B+1), max_len, dvalues bf16(L, 8)");
  const char* const jagged = R"({"op": "dense_to_jagged", "width": 8})";
  EXPECT_EQ(arguments_of(jagged, Direction::kForward),
            "dense bf16(B*max_len, 8), seq_offsets int64(B+1), max_len, out bf16(L, 8)");
  EXPECT_EQ(arguments_of(jagged, Direction::kBackward),
            "dout bf16(L, 8), seq_offsets int64(B+1), max_len, ddense bf16(B*max_len, 8)");
}

// Arguments of programs and gradients, too, are described as what they are there.
TEST(SequenceOperators, ArgumentsAreDescribedAsTheOperatorsOwn) {
  for (const std::string_view op : operator_names()) {
    const auto spec = smallest_op_spec(op);
    ASSERT_TRUE(spec.ok()) << op;
    if (!(*spec)->supports(Direction::kBackward)) continue;
    for (const Argument& argument : (*spec)->signature(Direction::kBackward)) {
      const bool given = argument.name == "dout" || argument.name == "dleft" || argument.name == "dright";
      const bool made = argument.role == ArgumentRole::kOutput;
      const std::string of = made && (*spec)->family() == Family::kRow ? argument.name.substr(1) : "";
      if (!given && !made) continue;
      EXPECT_THAT(std::string(argument.doc), testing::StartsWith("gradient of " + of)) << op << " " << argument.name;
    }
  }
  const auto doc = [](const char* json, const char* name) {
    const Signature signature = (*parse_op_spec(Json::parse(json), ""))->signature(Direction::kForward);
    return std::string(signature[static_cast<size_t>(find_argument(signature, name))].doc);
  };
  const char* const update = R"({"op": "update_kv_cache", "attn_dim": 8, "hidden_dim": 8})";
  EXPECT_EQ(doc(update, "k"), "of each sequence the rows that are cached, then the others");
  EXPECT_EQ(doc(update, "v_cache"), "cached rows of all sequences");
  const char* const construct = R"({"op": "construct_full_kv", "attn_dim": 8, "hidden_dim": 8})";
  EXPECT_EQ(doc(construct, "delta_v"), "delta_size new rows of each sequence");
  EXPECT_EQ(doc(construct, "full_k"), "of each sequence the cached rows, then the new ones");
  EXPECT_EQ(doc(R"({"op": "delta_hstu_attention", "attn_dim": 8, "hidden_dim": 8})", "max_delta_len"),
            "rows of q of every sequence");
}

// Sequences of 3 and 7 rows, 4 of them on the left and 6 on the right; 8 rows of each where that is dense. To less than
// a row: offsets, counts and times may count or not.
TEST(SequenceOperators, WorkCountsBytesOnce) {
  const Lengths lengths{{3, 7}, {1, 2}, 7, {{"Ll", {1, 3}}, {"Lr", {2, 4}}, {"Lq", {8, 8}}}};
  constexpr double kRow = 100 * 2, kWeight = 100 * 4;
  const auto expect_bytes = [&](const char* json, Direction direction, double expected) {
    EXPECT_NEAR((*parse(json))->work(direction, lengths).bytes, expected, kRow * 0.75) << json;
  };
  for (const Direction direction : kDirections) {
    expect_bytes(R"({"op": "concat_2d_jagged", "width": 100})", direction, (4 + 6 + 10) * kRow);
    expect_bytes(R"({"op": "split_2d_jagged", "width": 100})", direction, (4 + 6 + 10) * kRow);
    // Padding is not read.
    const bool forward = direction == Direction::kForward;
    expect_bytes(R"({"op": "jagged_to_padded_dense", "width": 100})", direction, (10 + (forward ? 16 : 10)) * kRow);
    expect_bytes(R"({"op": "dense_to_jagged", "width": 100})", direction, (10 + (forward ? 10 : 16)) * kRow);
    // Rows before a sequence are not read.
    expect_bytes(R"({"op": "take_last_rows", "width": 100})", direction, (10 + (forward ? 16 : 10)) * kRow);
    // A table of 6 positions, and one of 512 ages, of which 10 rows find 10 at most; gradients are of all.
    expect_bytes(R"({"op": "add_positional_embeddings", "width": 100})", direction, 20 * kRow + 6 * kWeight);
    expect_bytes(R"({"op": "add_timestamp_positional_embeddings", "width": 100})", direction,
                 20 * kRow + (6 + (forward ? 10 : 512)) * kWeight);
  }
  const char* const add = R"({"op": "jagged_dense_broadcast_add", "width": 100})";
  expect_bytes(add, Direction::kForward, (10 + 2 + 10) * kRow);
  expect_bytes(add, Direction::kBackward, (10 + 2) * kRow);
  EXPECT_EQ((*parse(add))->work(Direction::kForward, lengths).flops, 10 * 100);
}

// An operator that only moves rows has no kernel of its own for its gradient.
TEST(SequenceOperators, TheGradientOfWhatMovesRowsIsThePartner) {
  const std::map<std::string, std::string> partners = {
      {"concat_2d_jagged", "split_2d_jagged"},       {"split_2d_jagged", "concat_2d_jagged"},
      {"jagged_to_padded_dense", "dense_to_jagged"}, {"dense_to_jagged", "jagged_to_padded_dense"},
      {"take_last_rows", "place_last_rows"},         {"place_last_rows", "take_last_rows"}};
  for (const RowCase& row : sequence_cases({{"width", 8}})) {
    const bool left_only = row.json.value("left_only", false);  // whose gradient nobody takes
    ASSERT_EQ(row.spec->supports(Direction::kBackward), !left_only) << row.name;
    if (left_only) continue;
    EXPECT_EQ(row.spec->program(Direction::kForward), nullptr) << row.name;
    const Program* const gradient = row.spec->program(Direction::kBackward);
    const auto partner = partners.find(row.op);
    ASSERT_EQ(gradient != nullptr, partner != partners.end()) << row.name;
    if (gradient == nullptr) continue;
    ASSERT_EQ(gradient->steps.size(), 1) << row.name;
    EXPECT_TRUE(gradient->temporaries.empty()) << row.name;
    const ProgramStep& step = gradient->steps.front();
    EXPECT_EQ(step.direction, Direction::kForward) << row.name;
    // Padding has no gradient, so what it is filled with is no matter.
    Json expected = row.json;
    expected["op"] = partner->second;
    expected.erase("padding_value");
    EXPECT_EQ(key_text(*step.spec), key_text(**parse_op_spec(expected, ""))) << row.name;
  }
}

// A call with the inputs of both directions, by name.
class Call {
 public:
  Call(const RowSpec& spec, Lengths lengths) : spec_(spec), lengths_(std::move(lengths)) {
    for (const Direction direction : kDirections) {
      const Signature signature = spec_.signature(direction);
      const std::vector<HostValue> drawn = spec_.make_inputs(direction, lengths_, 5);
      for (size_t i = 0; i < signature.size(); ++i) {
        if (signature[i].role == ArgumentRole::kInput) inputs_[signature[i].name] = drawn[i];
      }
    }
  }

  std::vector<double>& input(const std::string& name) { return inputs_.at(name).tensor.reals; }

  // Outputs by name.
  std::map<std::string, std::vector<double>> run(Direction direction) const {
    const Signature signature = spec_.signature(direction);
    std::vector<HostValue> values(signature.size());
    for (size_t i = 0; i < signature.size(); ++i) {
      if (signature[i].role == ArgumentRole::kInput) values[i] = inputs_.at(signature[i].name);
    }
    spec_.reference(direction, lengths_, values);
    std::map<std::string, std::vector<double>> outputs;
    for (size_t i = 0; i < signature.size(); ++i) {
      if (signature[i].role == ArgumentRole::kOutput) outputs[signature[i].name] = values[i].tensor.reals;
    }
    return outputs;
  }

  // Loss of the forward direction: its outputs, times what backward takes as their gradients.
  double loss() {
    double sum = 0;
    for (const auto& [name, output] : run(Direction::kForward)) {
      const std::vector<double>& gradient = input("d" + name);
      EXPECT_EQ(output.size(), gradient.size()) << name;
      sum = std::inner_product(output.begin(), output.end(), gradient.begin(), sum);
    }
    return sum;
  }

 private:
  const RowSpec& spec_;
  Lengths lengths_;
  std::map<std::string, HostValue> inputs_;
};

// All are linear in rows and tables, but for what rounds in between, which has no part in a gradient: a difference over
// any step is the derivative.
TEST(SequenceOperators, GradientsAreThoseOfForward) {
  for (const RowCase& row : sequence_cases({{"width", 2}})) {
    if (!row.spec->supports(Direction::kBackward)) continue;
    const Lengths lengths = sequence_lengths(*row.spec, {3, 0, 6, 1});
    Json linear = row.json;
    linear.erase("round_embeddings");
    const RowCase exact{row.name, row.op, linear, std::dynamic_pointer_cast<const RowSpec>(*parse_op_spec(linear, ""))};
    Call call(*exact.spec, lengths);
    const double before = call.loss();
    for (const auto& [name, gradient] : Call(*row.spec, lengths).run(Direction::kBackward)) {
      std::vector<double>& input = call.input(name.substr(1));
      ASSERT_EQ(gradient.size(), input.size()) << row.name << " " << name;
      for (size_t i = 0; i < input.size(); ++i) {
        input[i] += 1;
        EXPECT_NEAR(gradient[i], call.loss() - before, 1e-9) << row.name << " " << name << " " << i;
        input[i] -= 1;
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
