// Functions of the row family against the float64 reference, forward and backward: evaluated in float64, they differ by
// rounding alone.
#include <gtest/gtest.h>

#include <map>

#include "compiler/ir/region_functions.h"
#include "compiler/spec/philox.h"
#include "tests/golden/golden.h"
#include "tests/passes/build_row.h"
#include "tests/passes/evaluate.h"
#include "tests/paths.h"
#include "tests/row/row_cases.h"

namespace hstujit {
namespace {

// One row of a call after the other, and one group of a row, as kernels do it.
class RowEvaluator {
 public:
  RowEvaluator(const RowSpec& spec, Direction direction, std::vector<HostValue>& values)
      : row_(build_row(spec, direction)),
        functions_(find_row_functions(*row_.module)),
        interface_(spec.interface(direction)),
        signature_(spec.signature(direction)),
        group_(static_cast<size_t>(interface_.width / interface_.groups)),
        values_(values) {
    for (const std::vector<RowOperand>* operands : {&interface_.inputs, &interface_.outputs}) {
      for (const RowOperand& operand : *operands) operands_[operand.name] = operand;
    }
  }

  void run(size_t rows) {
    for (const RowOperand& output : interface_.outputs) {
      const size_t lines = output.kind == RowOperandKind::kRow ? rows : 1;
      value_of(output).tensor.reals.assign(lines * static_cast<size_t>(interface_.columns(output)), 0);
    }
    for (row_number_ = 0; row_number_ < rows; ++row_number_) {
      for (first_ = 0; first_ < static_cast<size_t>(interface_.width); first_ += group_) run_group();
    }
  }

  const RowFunctions& functions() const { return functions_; }

 private:
  void run_group() {
    statistics_.clear();
    for (const RowRound& round : functions_.rounds) {
      std::vector<double> sums(mlir::func::FuncOp(round.summands).getNumResults(), 0);
      for (size_t column = first_; column < first_ + group_; ++column) {
        const std::vector<double> terms = call(round.summands, column);
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += terms[i];
      }
      for (unsigned i = 0; i < sums.size(); ++i) statistics_[row_sum_name(i)] = sums[i];
      const std::vector<double> found = call(round.statistics, first_);
      for (unsigned i = 0; i < found.size(); ++i) statistics_[result_name(round.statistics, i)] = found[i];
    }
    for (size_t column = first_; column < first_ + group_; ++column) {
      const std::vector<double> found = call(functions_.outputs, column);
      for (unsigned i = 0; i < found.size(); ++i)
        element_of(operands_.at(result_name(functions_.outputs, i)), column) += found[i];
    }
  }

  HostValue& value_of(const RowOperand& operand) {
    const int index = find_argument(signature_, operand.argument());
    EXPECT_GE(index, 0) << operand.name;
    return values_[static_cast<size_t>(std::max(index, 0))];
  }

  double& element_of(const RowOperand& operand, size_t column) {
    std::vector<double>& reals = value_of(operand).tensor.reals;
    switch (operand.kind) {
      case RowOperandKind::kRow:
        return reals.at(row_number_ * static_cast<size_t>(interface_.columns(operand)) +
                        static_cast<size_t>(operand.first_column) + column);
      case RowOperandKind::kGroupVector:
      case RowOperandKind::kGroupSum:
        return reals.at(column / group_);
      default:
        return reals.at(column);
    }
  }

  uint64_t seed_of(const std::string& name) {
    const RowOperand& operand = operands_.at(name);
    const HostValue& value = value_of(operand);
    const bool in_tensor = operand.kind == RowOperandKind::kSeedTensor;
    return static_cast<uint64_t>(in_tensor ? value.tensor.integers.at(0) : static_cast<int64_t>(value.scalar));
  }

  // The row by whose number random numbers are drawn.
  size_t drawn_row() {
    if (!interface_.has_row_numbers) return row_number_;
    const auto argument = static_cast<size_t>(find_argument(signature_, kRowNumbers));
    return static_cast<size_t>(values_[argument].tensor.integers.at(row_number_));
  }

  double argument(const std::string& name, size_t column) {
    if (const auto known = statistics_.find(name); known != statistics_.end()) return known->second;
    for (const RowRandom& random : functions_.randoms) {
      if (random.name != name) continue;
      const size_t element = drawn_row() * static_cast<size_t>(random.columns) + static_cast<size_t>(random.first);
      return 128 + philox_uniform(seed_of(random.seed), seed_of(random.offset), element + column);
    }
    const RowOperand& operand = operands_.at(name);
    return operand.kind == RowOperandKind::kScalar ? value_of(operand).scalar : element_of(operand, column);
  }

  std::vector<double> call(mlir::func::FuncOp function, size_t column) {
    std::vector<double> arguments;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      arguments.push_back(argument(argument_name(function, i), column));
    auto& evaluator = evaluators_[function.getName().str()];
    if (!evaluator) evaluator = std::make_unique<Evaluator<double>>(function);
    return evaluator->reals(arguments);
  }

  RowModule row_;
  RowFunctions functions_;
  RowInterface interface_;
  Signature signature_;
  size_t group_, row_number_ = 0, first_ = 0;
  std::vector<HostValue>& values_;
  std::map<std::string, RowOperand> operands_;
  std::map<std::string, double> statistics_;
  std::map<std::string, std::unique_ptr<Evaluator<double>>> evaluators_;
};

TEST(RowFunctions, AgreeWithTheReference) {
  constexpr size_t kRows = 3;
  const Lengths lengths{.rows = {kRows}, .num_targets = {}, .max_seq_len = kRows};
  for (const int64_t width : {2, 6, 64}) {
    for (const auto& [name, op, json, spec] : row_cases({{"width", width}})) {
      for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
        SCOPED_TRACE(name + " " + std::string(to_string(direction)) + " " + std::to_string(width));
        std::vector<HostValue> values = spec->make_inputs(direction, lengths, 1), expected = values;
        spec->reference(direction, lengths, expected);
        RowEvaluator(*spec, direction, values).run(kRows);
        for (size_t i = 0; i < values.size(); ++i) {
          for (size_t at = 0; at < expected[i].tensor.reals.size(); ++at) {
            // 1 / width is a constant of fp32.
            EXPECT_NEAR(values[i].tensor.reals[at], expected[i].tensor.reals[at], 1e-5) << i << " " << at;
          }
        }
      }
    }
  }
}

// A sum is computed as soon as what it adds up is known: backward needs no more rounds than forward, but where the
// gradient of silu depends on the row's scale.
TEST(RowFunctions, SumsDoNotWaitForOneAnother) {
  const auto rounds = [](const Json& json, Direction direction) {
    const OpSpecPtr spec = parse_op_spec(json, "spec").value();
    const RowModule row = build_row(*spec, direction);
    return find_row_functions(*row.module).rounds.size();
  };
  const Json layer_norm = {{"op", "layer_norm"}, {"width", 64}}, rms_norm = {{"op", "rms_norm"}, {"width", 64}};
  Json with_silu = rms_norm;
  with_silu["silu"] = true;
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    EXPECT_EQ(rounds(layer_norm, direction), 2u);
    EXPECT_EQ(rounds(rms_norm, direction), 1u);
    EXPECT_EQ(rounds(with_silu, direction), direction == Direction::kForward ? 1u : 2u);
  }
}

// In a sum of three terms and more each product is added to what is known before it, so that all are fused operations.
TEST(RowFunctions, ProductsAreFusedWithAdditions) {
  namespace arith = mlir::arith;
  int fused = 0;
  for (const auto& [name, op, json, spec] : row_cases({{"width", 64}})) {
    SCOPED_TRACE(name);
    RowModule row = build_row(*spec, Direction::kBackward);
    row.module->walk([&](arith::AddFOp sum) {
      const auto is_product = [](mlir::Value value) {
        return value.hasOneUse() && value.getDefiningOp<arith::MulFOp>();
      };
      const auto is_sum = [](mlir::Value value) { return value.hasOneUse() && value.getDefiningOp<arith::AddFOp>(); };
      const mlir::Value a = sum.getLhs(), b = sum.getRhs();
      EXPECT_FALSE(is_sum(a) && !is_product(b)) << "a sum that is no addend of a product: " << to_text(*row.module);
      fused += is_product(a) && is_sum(b) ? 1 : 0;
    });
  }
  EXPECT_GT(fused, 10);
}

void expect_golden_functions(const std::vector<RowCase>& cases) {
  for (const auto& [name, op, json, spec] : cases) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      if (!spec->supports(direction) || spec->program(direction) != nullptr) continue;
      const RowModule row = build_row(*spec, direction);
      expect_golden(name + "_" + std::string(to_string(direction)) + ".mlir", to_text(*row.module),
                    std::filesystem::path(source_path("/tests")) / "operators" / op / "golden");
    }
  }
}

TEST(RowFunctions, MatchGoldenFiles) {
  expect_golden_functions(row_cases({{"width", 64}}));
  expect_golden_functions(sequence_cases({{"width", 64}}));
}

}  // namespace
}  // namespace hstujit
