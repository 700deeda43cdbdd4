#include "compiler/spec/row_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <map>
#include <mutex>

#include "compiler/spec/random.h"
#include "compiler/spec/rounding.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/parallel.h"

namespace hstujit {

namespace {

// Rows that one thread of the reference takes at a time, at least.
constexpr int64_t kMinElements = 1 << 14;

// The first axis of a tensor that has rows of its own.
Dimension axis_of(const RowOperand& operand, const RowInterface& interface) {
  if (operand.rows) return *operand.rows;
  return interface.sequences ? interface.sequences->axis() : Dimension::of(std::string(kSequenceAxis));
}

// Rows of an axis in a batch.
int64_t lines_on(const Dimension& axis, const Lengths& lengths, const std::map<std::string, int64_t>& sizes) {
  if (const auto size = sizes.find(axis.symbol); size != sizes.end()) return size->second;
  if (axis.symbol == "B" && !axis.is_uniform()) return static_cast<int64_t>(lengths.rows.size());
  return lengths.total_rows(row_axis(axis));
}

int64_t lines_of(const RowOperand& operand, const RowInterface& interface, const Lengths& lengths,
                 const std::map<std::string, int64_t>& sizes) {
  return operand.is_matrix() ? lines_on(axis_of(operand, interface), lengths, sizes) : 1;
}

// Without those that share the argument of one before.
std::vector<RowOperand> arguments_of(const std::vector<RowOperand>& operands) {
  std::vector<RowOperand> arguments;
  for (const RowOperand& operand : operands) {
    const bool known = std::any_of(arguments.begin(), arguments.end(),
                                   [&](const RowOperand& before) { return before.argument() == operand.argument(); });
    if (!known) arguments.push_back(operand);
  }
  return arguments;
}

double bytes_of(const RowOperand& operand, int64_t lines, const RowInterface& interface) {
  if (!operand.has_elements()) return 0;
  return static_cast<double>(lines) * static_cast<double>(interface.elements(operand)) *
         static_cast<double>(size_of(operand.dtype));
}

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

  RowOfValues(const std::vector<OperandPlace>& places, std::vector<HostValue>& values,
              std::vector<std::vector<double>>* terms, size_t row)
      : places_(places), values_(values), terms_(terms), row_(row) {}

  std::span<const double> input(std::string_view name) const override {
    return line(place(name), values_[place(name).argument].tensor.reals);
  }
  double scalar(std::string_view name) const override {
    const OperandPlace& found = place(name);
    const HostValue& value = values_[found.argument];
    if (found.operand.kind == RowOperandKind::kSeedTensor) return static_cast<double>(value.tensor.integers[0]);
    return value.scalar;
  }
  int64_t number() const override { return static_cast<int64_t>(row_); }
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
  Sums added_;
  std::vector<double> unused_;
};

}  // namespace

bool RowSpec::has_vectors() const {
  const std::vector<RowOperand>& inputs = interface(Direction::kForward).inputs;
  return std::any_of(inputs.begin(), inputs.end(), [](const RowOperand& input) {
    return input.kind == RowOperandKind::kVector || input.kind == RowOperandKind::kGroupVector;
  });
}

int64_t RowSpec::elements_together() const {
  const RowInterface& forward = interface(Direction::kForward);
  const int64_t group = forward.width / forward.groups;
  return std::min(alignment() / static_cast<int64_t>(size_of(dtype())), group & -group);
}

int64_t RowSpec::vector_alignment(DataType dtype) const {
  return std::min<int64_t>(16, elements_together() * static_cast<int64_t>(size_of(dtype)));
}

Signature RowSpec::signature(Direction direction) const {
  const RowInterface& interface = this->interface(direction);
  const auto argument = [&](const RowOperand& operand, ArgumentRole role) {
    Argument result;
    result.name = operand.argument();
    result.role = role;
    result.doc = operand.doc;
    if (operand.is_seed()) result.semantic = Semantic::kSeed;
    if (operand.kind == RowOperandKind::kSeedTensor) {
      result.dtype = DataType::kInt64;
      result.shape = {Dimension::constant(1)};
      result.alignment = static_cast<int>(size_of(result.dtype));
      return result;
    }
    if (!operand.has_elements()) {
      result.kind = operand.is_seed() ? ArgumentKind::kInt : ArgumentKind::kFloat;
      result.range = operand.range;
      return result;
    }
    const bool row = operand.kind == RowOperandKind::kRow;
    result.dtype = operand.dtype;
    if (operand.is_matrix()) {
      result.shape.push_back(axis_of(operand, interface));
      const bool joins = interface.sequences && result.shape[0] == Dimension::of(std::string(kSequenceAxis));
      if (joins) {
        for (const Dimension& axis : interface.sequences->joined)
          result.joined.push_back(axis.is_jagged() ? axis.offsets : axis.integer);
      }
    }
    result.shape.push_back(Dimension::constant(interface.columns(operand)));
    const auto element = static_cast<int64_t>(size_of(operand.dtype));
    result.accumulated = role == ArgumentRole::kOutput && !row;
    result.in_place = operand.in_place;
    const bool vector = operand.kind == RowOperandKind::kVector || operand.is_table();
    result.alignment = static_cast<int>(row ? alignment() : vector ? vector_alignment(operand.dtype) : element);
    return result;
  };
  Signature signature;
  for (const RowOperand& input : arguments_of(interface.inputs))
    signature.push_back(argument(input, ArgumentRole::kInput));
  if (interface.sequences) {
    for (const Argument& integer : interface.sequences->integers) signature.push_back(integer);
  }
  for (const RowOperand& output : arguments_of(interface.outputs))
    signature.push_back(argument(output, ArgumentRole::kOutput));
  return signature;
}

Work RowSpec::work(Direction direction, const Lengths& lengths) const {
  const RowInterface& interface = this->interface(direction);
  const int64_t rows = lengths.total_rows();
  Work work;
  work.flops = operations(direction) * static_cast<double>(rows) * static_cast<double>(interface.width);
  const auto sizes = generated_sizes(lengths);
  const int64_t walked = interface.sequences ? lines_on(interface.sequences->axis(), lengths, sizes) : rows;
  for (const std::vector<RowOperand>* operands : {&interface.inputs, &interface.outputs}) {
    for (const RowOperand& operand : *operands) {
      int64_t lines = lines_of(operand, interface, lengths, sizes);
      // Others are found by no row.
      if (operand.is_found() && operand.kind != RowOperandKind::kTableSum) lines = std::min(lines, walked);
      work.bytes += bytes_of(operand, lines, interface);
    }
  }
  if (!interface.sequences) return work;
  for (const Argument& integers : interface.sequences->integers) {
    if (integers.kind != ArgumentKind::kTensor) continue;
    const int64_t count =
        has_rows(integers) ? lengths.total_rows(row_axis(integers)) : static_cast<int64_t>(lengths.rows.size());
    work.bytes += static_cast<double>(count) * static_cast<double>(size_of(integers.dtype));
  }
  return work;
}

std::vector<HostValue> RowSpec::make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const {
  const RowInterface& interface = this->interface(direction);
  const auto sizes = generated_sizes(lengths);
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
  if (interface.sequences) {
    for (const Argument& integer : interface.sequences->integers)
      values.push_back(make_integers(integer, lengths, seed));
  }
  values.resize(values.size() + arguments_of(interface.outputs).size());
  return values;
}

HostValue RowSpec::make_integers(const Argument& argument, const Lengths& lengths, uint64_t) const {
  HostValue value;
  if (argument.semantic == Semantic::kOffsets) value.tensor.integers = offsets_of(lengths.rows_of(argument.axis));
  if (argument.semantic == Semantic::kCounts) value.tensor.integers = lengths.num_targets;
  if (argument.kind == ArgumentKind::kTensor) value.tensor.shape = {static_cast<int64_t>(value.tensor.integers.size())};
  return value;
}

void RowSpec::visit_rows(Direction direction, std::vector<HostValue>& values,
                         std::vector<std::vector<double>>* terms) const {
  const std::vector<OperandPlace> places = places_of(interface(direction), signature(direction));
  const size_t inputs = interface(direction).inputs.size();
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
      RowOfValues row(places, values, terms, index);
      reference_row(direction, row);
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

void RowSpec::reference(Direction direction, const Lengths&, std::vector<HostValue>& values) const {
  visit_rows(direction, values, nullptr);
}

std::vector<std::vector<double>> RowSpec::error_variances(Direction direction, const std::vector<HostValue>& inputs,
                                                          const std::vector<bool>&) const {
  // Sums of a row and reciprocal roots, in fp32, are off by a few units in the last place. What rows have added to a
  // sum over them is off by as much, each on its own.
  constexpr double kUnit = 0x1p-21;
  std::vector<HostValue> values = inputs;
  std::vector<std::vector<double>> variances(values.size());
  visit_rows(direction, values, &variances);
  for (std::vector<double>& elements : variances) {
    for (double& element : elements) element = kUnit * kUnit * element * element;
  }
  return variances;
}

double RowSpec::error_bound(Direction direction) const {
  switch (dtype()) {
    case DataType::kFp32:
      return 1e-5;
    case DataType::kFp16:
      return 2e-3;
    default:
      return direction == Direction::kForward ? 6e-3 : 1e-2;
  }
}

void check_row_params(const RowParams& params, const std::string& path, Mistakes& mistakes) {
  const auto element = static_cast<int64_t>(size_of(params.dtype));
  if (params.alignment < element) {
    const std::string place = join_path(path, "alignment");
    mistakes.check(place, Status(Code::kInvalidConfig,
                                 fmt::format("{} is {}, but an element of {} has {} bytes; allowed: a power of two "
                                             "from {} to 16",
                                             place, params.alignment, to_string(params.dtype), element, element)));
  }
  check_weight_dtype(params.weight_dtype, params.dtype, path, mistakes);
}

bool check_weight_dtype(DataType weights, DataType rows, const std::string& path, Mistakes& mistakes) {
  if (weights == DataType::kFp32 || weights == rows) return true;
  const std::string place = join_path(path, "weight_dtype");
  return mistakes.check(
      place, Status(Code::kInvalidConfig, fmt::format("{} is {}, but rows are {}; allowed: fp32, or the type of rows",
                                                      place, to_string(weights), to_string(rows))));
}

void make_canonical(RowParams& params, bool has_vectors) {
  const int64_t row_bytes = params.width * static_cast<int64_t>(size_of(params.dtype));
  params.alignment = std::min(params.alignment, row_bytes & -row_bytes);
  if (!has_vectors) params.weight_dtype = RowParams().weight_dtype;
}

}  // namespace hstujit
