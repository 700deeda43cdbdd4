#include "compiler/spec/row_reference.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <mutex>

#include "compiler/spec/random.h"
#include "compiler/spec/rounding.h"
#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

// Rows that one thread of the reference takes at a time, at least.
constexpr int64_t kMinElements = 1 << 14;

HostTensor elements_of(const RowOperand& operand, int64_t rows, int64_t width, uint64_t seed, uint64_t stream) {
  HostTensor tensor;
  if (operand.is_matrix()) tensor.shape = {rows};
  tensor.shape.push_back(width);
  const auto lines = static_cast<size_t>(rows);
  tensor.reals.resize(lines * static_cast<size_t>(width));
  parallel_for(lines, threads_for(static_cast<int64_t>(tensor.reals.size()), 4096), [&](int, size_t line) {
    const size_t begin = line * static_cast<size_t>(width);
    for (size_t i = begin; i < begin + static_cast<size_t>(width); ++i)
      tensor.reals[i] = round_to(operand.dtype, operand.usual + random_normal(seed, stream, i));
  });
  return tensor;
}

// Numbers of some rows of many, in order, each once; none of them is the row's place.
HostValue drawn_row_numbers(int64_t rows) {
  HostValue value;
  value.tensor.shape = {rows};
  for (int64_t row = 0; row < rows; ++row) value.tensor.integers.push_back(3 * row + 1 + (int64_t{1} << 40));
  return value;
}

// An operand of a call: the argument that has it, and what of that.
struct OperandPlace {
  RowOperand operand;
  size_t argument = 0;
  size_t columns = 0, elements = 0;  // RowInterface::columns, elements
};

std::vector<OperandPlace> places_of(const RowInterface& interface, const Signature& signature) {
  std::vector<OperandPlace> places;
  for (const std::vector<RowOperand>* operands : {&interface.inputs, &interface.outputs}) {
    for (const RowOperand& operand : *operands) {
      const int argument = find_argument(signature, operand.argument());
      assert(argument >= 0);
      places.push_back({operand, static_cast<size_t>(argument), static_cast<size_t>(interface.columns(operand)),
                        static_cast<size_t>(interface.elements(operand))});
    }
  }
  return places;
}

void add_to(std::vector<double>& totals, const std::vector<double>& added) {
  for (size_t i = 0; i < added.size(); ++i) totals[i] += added[i];
}

// One row of values by argument.
class RowOfValues final : public ReferenceRow {
 public:
  using Sums = std::map<std::string_view, std::vector<double>>;

  // `number`: of the row, for random numbers.
  RowOfValues(const std::vector<OperandPlace>& places, std::vector<HostValue>& values,
              std::vector<std::vector<double>>* terms, size_t row, int64_t number)
      : places_(places), values_(values), terms_(terms), row_(row), number_(number) {}

  std::span<const double> input(std::string_view name) const override {
    return line(place(name), values_[place(name).argument].tensor.reals);
  }
  double scalar(std::string_view name) const override {
    const OperandPlace& found = place(name);
    const HostValue& value = values_[found.argument];
    if (found.operand.kind == RowOperandKind::kSeedTensor) return static_cast<double>(value.tensor.integers[0]);
    return value.scalar;
  }
  int64_t number() const override { return number_; }
  std::span<double> output(std::string_view name) override {
    const OperandPlace& found = place(name);
    if (found.operand.kind == RowOperandKind::kRow) return line(found, values_[found.argument].tensor.reals);
    std::vector<double>& added = added_[found.operand.name];
    added.resize(found.elements, 0);
    return added;
  }
  std::span<double> terms(std::string_view name) override {
    if (terms_ != nullptr) return line(place(name), (*terms_)[place(name).argument]);
    unused_.resize(place(name).elements);
    return unused_;
  }

  const Sums& added() const { return added_; }

 private:
  const OperandPlace& place(std::string_view name) const {
    const auto found = std::find_if(places_.begin(), places_.end(),
                                    [&](const OperandPlace& place) { return place.operand.name == name; });
    assert(found != places_.end());
    return *found;
  }
  std::span<double> line(const OperandPlace& place, std::vector<double>& reals) const {
    if (place.operand.kind != RowOperandKind::kRow) return reals;
    return std::span(reals).subspan(row_ * place.columns + static_cast<size_t>(place.operand.first_column),
                                    place.elements);
  }

  const std::vector<OperandPlace>& places_;
  std::vector<HostValue>& values_;
  std::vector<std::vector<double>>* terms_;
  size_t row_;
  int64_t number_;
  Sums added_;
  std::vector<double> unused_;
};

}  // namespace

std::vector<HostValue> RowInputs::make_inputs(const OpSpec& op, Direction direction, const Lengths& lengths,
                                              uint64_t seed) const {
  const RowInterface& interface = static_cast<const RowSpec&>(op).interface(direction);
  const auto sizes = op.generated_sizes(lengths);
  std::vector<HostValue> values;
  for (const RowOperand& input : arguments_of(interface.inputs)) {
    HostValue value;
    if (input.has_elements()) {
      value.tensor =
          elements_of(input, lines_of(input, interface, lengths, sizes), interface.columns(input), seed, values.size());
    } else if (input.kind == RowOperandKind::kSeedTensor) {
      value.tensor = {{1}, {}, {static_cast<int64_t>(input.usual)}};
    } else {
      value.scalar = input.usual;
    }
    values.push_back(std::move(value));
  }
  if (interface.has_row_numbers)
    values.push_back(drawn_row_numbers(lines_of(interface.walked(), interface, lengths, sizes)));
  if (interface.sequences) {
    for (const Argument& integer : interface.sequences->integers)
      values.push_back(make_integers(op, integer, lengths, seed));
  }
  values.resize(values.size() + arguments_of(interface.outputs).size());
  return values;
}

HostValue batch_integers(const Argument& argument, const Lengths& lengths) {
  HostValue value;
  if (argument.semantic == Semantic::kOffsets) value.tensor.integers = offsets_of(lengths.rows_of(argument.axis));
  if (argument.semantic == Semantic::kCounts) value.tensor.integers = lengths.counts_of(argument.name);
  if (argument.kind == ArgumentKind::kTensor) value.tensor.shape = {static_cast<int64_t>(value.tensor.integers.size())};
  return value;
}

void RowReference::visit_rows(const RowSpec& spec, Direction direction, std::vector<HostValue>& values,
                              std::vector<std::vector<double>>* terms) const {
  const RowInterface& interface = spec.interface(direction);
  const Signature signature = spec.signature(direction);
  const std::vector<OperandPlace> places = places_of(interface, signature);
  const int numbers = interface.has_row_numbers ? find_argument(signature, kRowNumbers) : -1;
  const size_t inputs = interface.inputs.size();
  const size_t width = places.front().elements;
  const size_t rows = values[places.front().argument].tensor.reals.size() / places.front().columns;
  for (size_t i = inputs; i < places.size(); ++i) {
    const OperandPlace& output = places[i];
    HostTensor& tensor = values[output.argument].tensor;
    const bool row = output.operand.kind == RowOperandKind::kRow;
    tensor.shape.clear();
    if (row) tensor.shape.push_back(static_cast<int64_t>(rows));
    tensor.shape.push_back(static_cast<int64_t>(output.columns));
    tensor.reals.assign((row ? rows : 1) * output.columns, 0);
    if (terms != nullptr) (*terms)[output.argument].assign((row ? rows : 1) * output.columns, 0);
  }
  const size_t block = std::max<size_t>(1, static_cast<size_t>(kMinElements) / width);
  // In float64 the order in which blocks are added is no matter.
  std::mutex adding;
  parallel_blocks(rows, block, [&](size_t begin, size_t end) {
    RowOfValues::Sums sums, squares;
    for (size_t index = begin; index < end; ++index) {
      const int64_t number =
          numbers < 0 ? static_cast<int64_t>(index) : values[static_cast<size_t>(numbers)].tensor.integers[index];
      RowOfValues row(places, values, terms, index, number);
      compute_row(spec, direction, row);
      for (const auto& [name, added] : row.added()) {
        std::vector<double>&sum = sums[name], &square = squares[name];
        sum.resize(added.size(), 0);
        square.resize(added.size(), 0);
        for (size_t i = 0; i < added.size(); ++i) {
          sum[i] += added[i];
          square[i] += added[i] * added[i];
        }
      }
    }
    const std::lock_guard lock(adding);
    for (const auto& [name, sum] : sums) {
      const auto place = std::find_if(places.begin(), places.end(),
                                      [&](const OperandPlace& found) { return found.operand.name == name; });
      add_to(values[place->argument].tensor.reals, sum);
      if (terms != nullptr) add_to((*terms)[place->argument], squares[name]);
    }
  });
  if (terms == nullptr) return;
  for (size_t i = inputs; i < places.size(); ++i) {
    if (places[i].operand.kind == RowOperandKind::kRow) continue;
    for (double& element : (*terms)[places[i].argument]) element = std::sqrt(element);
  }
}

void RowReference::compute(const OpSpec& op, Direction direction, const Lengths&,
                           std::vector<HostValue>& values) const {
  visit_rows(static_cast<const RowSpec&>(op), direction, values, nullptr);
}

std::vector<std::vector<double>> RowReference::error_variances(const OpSpec& op, Direction direction,
                                                               const std::vector<HostValue>& inputs,
                                                               const std::vector<bool>&) const {
  // Sums of a row and reciprocal roots, in fp32, are off by a few units in the last place. What rows have added to a
  // sum over them is off by as much, each on its own.
  constexpr double kUnit = 0x1p-21;
  std::vector<HostValue> values = inputs;
  std::vector<std::vector<double>> variances(values.size());
  visit_rows(static_cast<const RowSpec&>(op), direction, values, &variances);
  for (std::vector<double>& elements : variances) {
    for (double& element : elements) element = kUnit * kUnit * element * element;
  }
  return variances;
}

}  // namespace hstujit
