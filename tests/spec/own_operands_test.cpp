// Operands in text: what is read, what is refused and where, what scores make of them, and their gradients.
#include "compiler/spec/operators/hstu_attention/operands/own_operands.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "compiler/spec/call/interface.h"
#include "compiler/spec/op_spec.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/operators/hstu_attention/score_formula.h"
#include "compiler/spec/random.h"
#include "tests/paths.h"
#include "tests/spec/random_score.h"
#include "tests/support/whole_file.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Json with_operands(std::string_view operands, std::string_view score, const Json& others = Json::object()) {
  Json json = {{"op", "hstu_attention"}, {"heads", 4},           {"attn_dim", 8},
               {"hidden_dim", 8},        {"operands", operands}, {"score", score}};
  json.update(others);
  return json;
}

OpSpecPtr spec_with(const Json& json) {
  auto spec = parse_op_spec(json, "op");
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return spec.ok() ? *spec : nullptr;
}

std::string refusal_of_operands(const Json& json) {
  const auto spec = parse_op_spec(json, "op");
  EXPECT_FALSE(spec.ok()) << json;
  return spec.ok() ? "" : spec.status().message();
}

std::string refused_operands(std::string_view text) {
  const auto operands = parse_own_operands(text, 4);
  EXPECT_FALSE(operands.ok()) << text;
  return operands.ok() ? "" : operands.status().message();
}

TEST(OwnOperands, AreArgumentsOfTheLaunch) {
  const OpSpecPtr spec = spec_with(
      with_operands("ts: row(int64), by_age: table(129, grad), w: table(5, heads=2, bf16, grad), g: row(heads), s: "
                    "head(grad), c: scalar",
                    "silu(x + by_age[int(log(1.0 + abs(ts[row + 1] - ts[col])))] + w[row - col] * g[col]) * s + c"));
  const Signature forward = spec->signature(Direction::kForward), backward = spec->signature(Direction::kBackward);
  std::vector<std::string> inputs, gradients;
  for (const Argument& argument : forward) inputs.push_back(argument.name);
  for (const Argument& argument : backward) {
    if (argument.role == ArgumentRole::kOutput) gradients.push_back(argument.name);
  }
  EXPECT_THAT(inputs, ::testing::ElementsAre("q", "k", "v", "seq_offsets", "ts", "by_age", "w", "g", "s", "c",
                                             "max_seq_len", "alpha", "scaling_seqlen", "out"));
  EXPECT_THAT(gradients, ::testing::ElementsAre("dq", "dk", "dv", "dby_age", "dw", "ds"));
  const auto argument = [&](std::string_view name) {
    return backward[static_cast<size_t>(find_argument(backward, name))];
  };
  EXPECT_EQ(argument("ts").dtype, DataType::kInt64);
  EXPECT_EQ(argument("dw").dtype, DataType::kBf16);
  EXPECT_EQ(argument("w").shape.size(), 2U);
  EXPECT_EQ(argument("g").shape.size(), 2U);
}

TEST(OwnOperands, TextsThatSayTheSameAreOneInstance) {
  const std::string text = "  a:row ( grad ,bf16),w: table(heads =2, 7,int32 ) ,\ns:head,g: table(3, heads=4)";
  EXPECT_EQ(canonical_own_operands(text, 4),
            "a: row(bf16, grad), w: table(7, int32, heads=2), s: head, g: table(3, heads)");
  EXPECT_EQ(canonical_own_operands(canonical_own_operands(text, 4), 4), canonical_own_operands(text, 4));
  EXPECT_EQ(canonical_own_operands("", 4), "");
  const Json one = spec_with(with_operands("s:head", "x* s"))->to_json();
  EXPECT_EQ(one["operands"], "s: head");
  EXPECT_EQ(one["score"], "x * s");
  EXPECT_FALSE(spec_with(with_operands("", "silu"))->to_json().contains("operands"));
}

// The rows of the page's table of examples.
TEST(OwnOperands, TheExamplesOfThePageAreRead) {
  const std::string page = whole_file(source_path("/docs/expressions.md")).value();
  const std::string table = page.substr(page.find("### Examples of operands"));
  int examples = 0;
  for (size_t at = 0; (at = table.find("\n| `", at)) != std::string::npos; ++at) {
    const size_t operands = at + 4, operands_end = table.find('`', operands);
    const size_t score = table.find('`', operands_end + 1) + 1, score_end = table.find('`', score);
    ++examples;
    EXPECT_NE(spec_with(with_operands(table.substr(operands, operands_end - operands),
                                      table.substr(score, score_end - score))),
              nullptr);
  }
  EXPECT_EQ(examples, 8);
}

TEST(OwnOperands, RefusalsSayWhere) {
  EXPECT_EQ(refused_operands("ts row"), "column 4: there is \"r\"; expected: \":\" and the kind of the operand");
  EXPECT_EQ(refused_operands("ts: rwo"),
            "column 5: there is no kind \"rwo\", did you mean \"row\"?; allowed: row, table, "
            "head, scalar, sequence, pair");
  EXPECT_EQ(refused_operands("ts: row,"),
            "column 9: the declarations end; expected: the name of an operand, as in \"ts: "
            "row(int64)\"");
  EXPECT_EQ(refused_operands("t: table"), "column 4: a table has a number of entries; allowed: such as table(129)");
  EXPECT_EQ(refused_operands("t: table(0)"), "column 10: there is \"0\"; allowed: a number from 1 to 1048576");
  EXPECT_EQ(refused_operands("t: table(9, heads=3)"),
            "column 13: heads is 3, and heads share a table's evenly; allowed: "
            "divisors of 4");
  EXPECT_THAT(refused_operands("s: head(heads)"),
              StartsWith("column 9: there is \"heads\"; allowed for a head: bf16, "));
  EXPECT_THAT(refused_operands("s: sequence(heads)"),
              StartsWith("column 13: there is \"heads\"; allowed for a sequence: bf16, "));
  EXPECT_EQ(refused_operands("b: pair(int32)"),
            "column 9: there is \"int32\"; allowed for a pair: bf16, fp16, fp32, grad, heads, heads=2");
  EXPECT_EQ(refused_operands("b: pair(heads=3)"),
            "column 9: heads is 3, and heads share a pair's evenly; allowed: divisors of 4");
  EXPECT_EQ(refused_operands("t: row(int64, grad)"),
            "column 1: t has a gradient and the type int64; allowed: of bf16, fp16, fp32");
  EXPECT_EQ(refused_operands("row: row"), "column 1: \"row\" is a word of expressions; allowed: another name");
  EXPECT_EQ(refused_operands("silu: row"), "column 1: \"silu\" is a word of expressions; allowed: another name");
  EXPECT_EQ(refused_operands("dq: row"),
            "column 1: \"dq\" is a parameter of operators that attend; allowed: another name");
  EXPECT_EQ(refused_operands("double: row"), "column 1: \"double\" is a word of C++; allowed: another name");
  EXPECT_EQ(refused_operands("a: row, a: head"), "column 9: \"a\" is also a; allowed: another name");
  EXPECT_EQ(refused_operands("a: row, da: row"), "column 9: \"da\" is also a; allowed: another name");
  EXPECT_EQ(refused_operands("da: row, a: row"),
            "column 10: \"a\" is also what a gradient is called like, of da; allowed: another name");
  EXPECT_EQ(refused_operands("1a: row"),
            "column 1: \"1a\" is no name; allowed: up to 40 letters, digits and _, a digit not first");
  EXPECT_EQ(refused_operands("a: table(16385, grad)"),
            "tables with gradients have 16385 entries, over all heads; allowed: up to 16384");
  EXPECT_EQ(refused_operands("a: table(4097, heads, grad)"),
            "tables with gradients have 16388 entries, over all heads; allowed: up to 16384");
  EXPECT_EQ(refused_operands("w: table(3, bf16, fp16)"), "column 19: the type is said twice; allowed: once");
  EXPECT_EQ(refused_operands("w: table(3, grad, grad)"), "column 19: grad is said twice; allowed: once");
  std::string nine;
  for (int i = 0; i < 9; ++i) nine += fmt::format("{}a{}: scalar(grad)", i == 0 ? "" : ", ", i);
  EXPECT_EQ(refused_operands(nine), "9 tables, heads and scalars have gradients; allowed: up to 8");
  EXPECT_THAT(refused_operands(std::string(5000, ' ')), StartsWith("it has 5000 bytes"));
  std::string many;
  for (int i = 0; i < 17; ++i) many += fmt::format("{}a{}: row", i == 0 ? "" : ", ", i);
  EXPECT_THAT(refused_operands(many), HasSubstr("a16 is one operand too many; allowed: up to 16"));
}

// The arguments and parameters of every operator that attends, so that a declared operand is never one of them.
TEST(OwnOperands, ArgumentsAndParametersAreNoNames) {
  const auto refuse = [](std::string_view op, const std::string& name) {
    EXPECT_FALSE(parse_own_operands(name + ": row", 4).ok()) << name << " of " << op;
  };
  int operators = 0;
  for (const std::string_view op : operator_names()) {
    const Json properties = operator_schema(op)["properties"];
    if (!properties.contains("operands")) continue;
    ++operators;
    for (const auto& [name, rules] : properties.items()) refuse(op, name);
    const Result<OperatorCall> call = operator_call(op);
    ASSERT_TRUE(call.ok()) << call.status().message();
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      if (!call->of(direction)) continue;
      for (const CallArgument& argument : call->of(direction)->arguments) refuse(op, argument.argument.name);
    }
  }
  EXPECT_EQ(operators, 7);
}

TEST(OwnOperands, RefusalsOfScores) {
  const auto refused = [](const char* operands, const char* score) {
    return refusal_of_operands(with_operands(operands, score));
  };
  EXPECT_EQ(refused("t: row, s: head", "x * s"),
            "op.operands is \"t: row, s: head\", but neither the score nor the mask reads t; allowed: what one of them "
            "reads");
  EXPECT_EQ(refused("t: row", "x + t"),
            "op.score is \"x + t\", but column 5: t is read at an index; allowed: such as "
            "t[row - col]");
  EXPECT_EQ(refused("w: sequence", "x + w[row]"),
            "op.score is \"x + w[row]\", but column 6: w has no index; allowed: w alone");
  EXPECT_EQ(
      refused("b: pair", "x + b[col, row]"),
      "op.score is \"x + b[col, row]\", but column 7: there is \"col\"; expected: b[row, col], the element of the "
      "pair");
  EXPECT_THAT(refused("b: pair", "x + b"), HasSubstr("column 6: the expression ends; expected: b[row, col], the"));
  EXPECT_EQ(refused("s: head", "x + s[1]"), "op.score is \"x + s[1]\", but column 6: s has no index; allowed: s alone");
  EXPECT_THAT(refused("t: table(5)", "x + t[0.5 * row]"),
              HasSubstr("column 7: the index of t is a real number; allowed: an integer, or int(a)"));
  EXPECT_THAT(refused("t: table(5)", "x + t[int(x)]"), HasSubstr("the index of t depends on x; allowed: an index of"));
  EXPECT_THAT(refused("t: row(grad)", "x + t[row + 1]"),
              HasSubstr("t has a gradient and is read at another position; allowed: t[row] and t[col]"));
  EXPECT_THAT(refused("t: rows", "x"), StartsWith("op.operands is \"t: rows\", but column 4: there is no kind"));
  EXPECT_THAT(refused("t: row", "x + u[row]"), HasSubstr("there is no \"u\""));
  EXPECT_THAT(refused("t: row", "x + t[row"), HasSubstr("expected: \"]\""));
}

// Elements of kRandomOperands, for sequences of up to 100 rows and three heads.
class Elements {
 public:
  explicit Elements(uint64_t seed) : operands_(parse_own_operands(kRandomOperands, kHeads).value()) {
    for (size_t o = 0; o < operands_.size(); ++o) {
      const OperandSizes sizes = {kSequences, kRows, kRows, kRows};
      HostTensor& tensor = tensors_.emplace_back();
      tensor.shape = operands_[o].kind->sizes(operands_[o], sizes);
      for (int64_t i = 0; i < static_cast<int64_t>(elements(operands_[o], sizes)); ++i) {
        const auto place = static_cast<uint64_t>(i);
        if (is_integer(operands_[o].dtype))
          tensor.integers.push_back(static_cast<int64_t>(random_bits(seed, o, place) % 5000));
        if (!is_integer(operands_[o].dtype)) tensor.reals.push_back(random_normal(seed, o, place));
      }
    }
  }

  static constexpr int64_t kHeads = 3, kSequences = 2, kRows = 100;
  std::vector<const HostTensor*> tensors() const {
    std::vector<const HostTensor*> pointers;
    for (const HostTensor& tensor : tensors_) pointers.push_back(&tensor);
    return pointers;
  }
  HostTensor& tensor(size_t operand) { return tensors_[operand]; }

  // Reads an element at an index, written beside the library's code.
  double read(std::string_view name, int64_t index, const ScorePlace& place) const {
    const auto found = std::ranges::find(operands_, name, &Operand::name);
    const HostTensor& tensor = tensors_[static_cast<size_t>(found - operands_.begin())];
    const auto real = [&](int64_t i) { return tensor.reals[static_cast<size_t>(i)]; };
    if (name == "slope") return real(place.head);
    if (name == "gain") return real(0);
    if (name == "own") return real(place.sequence);
    if (name == "rel") return real((place.sequence * kRows + place.row) * kRows + place.col);
    if (name == "age") return real(std::clamp<int64_t>(index, 0, 36));
    if (name == "w") return real(std::clamp<int64_t>(index, 0, 11) * kHeads + place.head);
    if (index < 0 || index >= place.n) return 0;
    return name == "ts" ? static_cast<double>(tensor.integers[static_cast<size_t>(index)]) : real(index);
  }

 private:
  std::vector<Operand> operands_;
  std::vector<HostTensor> tensors_;
};

ScoreFormula formula_with(const std::string& text, const Elements& elements) {
  HstuAttentionParams params = {.heads = Elements::kHeads, .attn_dim = 8, .hidden_dim = 8, .num_targets = true};
  params.score = text;
  params.operands = kRandomOperands;
  return ScoreFormula(params, 0.5, elements.tensors());
}

const ScorePlace kPairs[] = {{0, 0, 1, 0, 0}, {5, 3, 40, 2, 1}, {40, 7, 90, 0, 2, 0, 1}, {3, 64, 65, 5, 0, 0, 1}};

TEST(OwnOperands, RandomTextsMeanWhatTheySay) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const RandomScore::Part score = random_score_of_operands(seed);
    const auto operands = parse_own_operands(kRandomOperands, Elements::kHeads).value();
    const Result<Expression> expression = parse_score(score.text, operands);
    ASSERT_TRUE(expression.ok()) << score.text << ": " << expression.status().message();
    const std::string printed = canonical_score(score.text, operands);
    ASSERT_EQ(canonical_score(printed, operands), printed) << score.text;
    const Elements elements(seed);
    const ScoreFormula first = formula_with(score.text, elements), second = formula_with(printed, elements);
    for (const ScorePlace& at : kPairs) {
      for (const double x : {-3.7, 0.3, 2.9}) {
        const auto read = [&](std::string_view name, int64_t index) { return elements.read(name, index, at); };
        const double expected = score.value({x, at.row, at.col, at.n, at.targets, at.head, 0.5, read});
        ASSERT_NEAR(first.value(x, at), expected, 1e-12 * std::max(1.0, std::abs(expected))) << score.text;
        ASSERT_EQ(first.value(x, at), second.value(x, at)) << printed;
      }
    }
  }
}

// Slopes at the sites of an element add up to the effect of a change of the element, except at bends.
TEST(OwnOperands, SlopesAreDifferences) {
  constexpr double kStep = 1e-5;
  int compared = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const RandomScore::Part score = random_score_of_operands(seed, false);
    Elements elements(seed);
    const ScoreFormula formula = formula_with(score.text, elements);
    EXPECT_GE(formula.sites().size(), 6U);
    for (const ScorePlace& place : kPairs) {
      const double x = 0.43;
      std::map<std::pair<size_t, int64_t>, double> slopes;
      for (const ScoreFormula::Site& site : formula.sites()) {
        const int64_t element = formula.element(site, place);
        if (element >= 0) slopes[{site.operand, element}] += formula.at(site, x, place, FormulaDetail::kSlope).slope;
      }
      for (const auto& [at, slope] : slopes) {
        double& element = elements.tensor(at.first).reals[static_cast<size_t>(at.second)];
        const double before = element;
        element = before + kStep;
        const double above = formula.value(x, place);
        element = before - kStep;
        const double difference = (above - formula.value(x, place)) / (2 * kStep);
        element = before;
        ++compared;
        EXPECT_NEAR(slope, difference, 1e-6 * (1 + std::abs(slope) + std::abs(formula.value(x, place)))) << score.text;
      }
    }
  }
  EXPECT_GT(compared, 3000);
}

// Differences of times whose nanoseconds a double has no room for are exact.
TEST(OwnOperands, IntegersOf64BitsAreExact) {
  HstuAttentionParams params = {.heads = 1, .attn_dim = 8, .hidden_dim = 8};
  params.operands = "ts: row(int64)";
  params.score = "x + int(ts[row] - ts[col])";
  HostTensor times;
  times.integers = {1700000000000000001, 1700000000000000004};
  const ScoreFormula formula(params, 1, {&times});
  EXPECT_EQ(formula.value(0, {1, 0, 2, 0, 0}), 3);
  params.score = "x + 1.0 * ((ts[row] - ts[col]) % 5) - (ts[row] == ts[col] + 3)";
  EXPECT_FALSE(parse_score(params).ok()) << "a condition is no number";
  params.score = "where(ts[row] == ts[col] + 3, x, 0) + (ts[row] - ts[col]) // 2";
  EXPECT_EQ(ScoreFormula(params, 1, {&times}).value(2, {1, 0, 2, 0, 0}), 3);
}

double loss_of(const OpSpec& spec, const Lengths& lengths, std::vector<HostValue> values,
               const std::vector<double>& dout) {
  spec.reference(Direction::kForward, lengths, values);
  const Signature signature = spec.signature(Direction::kForward);
  const auto& out = values[static_cast<size_t>(find_argument(signature, "out"))].tensor.reals;
  double sum = 0;
  for (size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
  return sum;
}

// The reference's gradients of operands are differences of the loss, with a bias and factors of rows beside them.
void expect_differences(const Json& changes) {
  const std::string text =
      "tanh(x + 0.25 * a[row] * a[col] + age[int(log2(1.5 + abs(ts[row + 1] - ts[col])))] + "
      "age[row - col] * w[row - col - 3] + slope) * gain + own * x + rel[row, col]";
  Json json = {{"dtype", "fp32"}, {"num_targets", true}, {"rab_heads", 2}, {"attn_scale", "rows"}};
  json.update(changes);
  if (changes.contains("num_softmax_heads")) json["softmax_score"] = text;
  const OpSpecPtr spec = spec_with(with_operands(kRandomOperands, text, json));
  const Lengths lengths = {.rows = {5, 0, 11}, .num_targets = {2, 0, 3}, .max_seq_len = 11};
  std::vector<HostValue> values = spec->make_inputs(Direction::kBackward, lengths, 7);
  spec->reference(Direction::kBackward, lengths, values);
  const Signature backward = spec->signature(Direction::kBackward), forward = spec->signature(Direction::kForward);
  const auto at = [&](const Signature& signature, std::string_view name) {
    return static_cast<size_t>(find_argument(signature, name));
  };
  std::vector<HostValue> inputs(forward.size());
  for (size_t i = 0; i < forward.size(); ++i) {
    if (forward[i].role == ArgumentRole::kInput) inputs[i] = values[at(backward, forward[i].name)];
  }
  const std::vector<double> dout = values[at(backward, "dout")].tensor.reals;
  for (const char* name : {"a", "age", "w", "slope", "gain"}) {
    const std::vector<double>& gradient = values[at(backward, std::string("d") + name)].tensor.reals;
    double largest = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      constexpr double kStep = 1e-5;
      double& element = inputs[at(forward, name)].tensor.reals[i];
      const double before = element;
      element = before + kStep;
      const double above = loss_of(*spec, lengths, inputs, dout);
      element = before - kStep;
      const double difference = (above - loss_of(*spec, lengths, inputs, dout)) / (2 * kStep);
      element = before;
      largest = std::max(largest, std::abs(difference));
      EXPECT_NEAR(gradient[i], difference, 1e-6 * std::max(1.0, std::abs(difference))) << name << "[" << i << "]";
    }
    EXPECT_GT(largest, 0.01) << name;
  }
}

TEST(OwnOperands, GradientsAreDifferencesOfTheLoss) {
  expect_differences(Json::object());
  for (const int64_t heads : {1, 4}) expect_differences({{"num_softmax_heads", heads}});
}

}  // namespace
}  // namespace hstujit::test
