#include "compiler/spec/row_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
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

std::string gradient_name(const RowOperand& operand) { return "d" + operand.name; }

bool has_elements(const RowOperand& operand) { return operand.kind != RowOperandKind::kScalar; }

double bytes_of(const RowOperand& operand, int64_t rows, int64_t width) {
  if (!has_elements(operand)) return 0;
  const int64_t lines = operand.kind == RowOperandKind::kRow ? rows : 1;
  return static_cast<double>(lines) * static_cast<double>(width) * static_cast<double>(size_of(operand.dtype));
}

HostTensor elements_of(const RowOperand& operand, int64_t rows, int64_t width, uint64_t seed, uint64_t stream) {
  HostTensor tensor;
  if (operand.kind == RowOperandKind::kRow) tensor.shape = {rows};
  tensor.shape.push_back(width);
  const size_t lines = operand.kind == RowOperandKind::kRow ? static_cast<size_t>(rows) : 1;
  tensor.reals.resize(lines * static_cast<size_t>(width));
  parallel_for(lines, threads_for(static_cast<int64_t>(tensor.reals.size()), 4096), [&](int, size_t line) {
    const size_t begin = line * static_cast<size_t>(width);
    for (size_t i = begin; i < begin + static_cast<size_t>(width); ++i)
      tensor.reals[i] = round_to(operand.dtype, operand.usual + random_normal(seed, stream, i));
  });
  return tensor;
}

// One row of values by argument.
class RowOfValues final : public ReferenceRow {
 public:
  using Sums = std::map<std::string_view, std::vector<double>>;

  RowOfValues(const Signature& signature, std::vector<HostValue>& values, std::vector<std::vector<double>>* terms,
              size_t width, size_t row)
      : signature_(signature), values_(values), terms_(terms), width_(width), row_(row) {}

  std::span<const double> input(std::string_view name) const override { return line(index(name)); }
  double scalar(std::string_view name) const override { return values_[index(name)].scalar; }
  std::span<double> output(std::string_view name) override {
    const size_t i = index(name);
    if (signature_[i].shape.size() == 2) return line(i);
    std::vector<double>& added = added_[signature_[i].name];
    added.resize(width_, 0);
    return added;
  }
  std::span<double> terms(std::string_view name) override {
    if (terms_ == nullptr) {
      unused_.resize(width_);
      return unused_;
    }
    return std::span((*terms_)[index(name)]).subspan(row_ * width_, width_);
  }

  const Sums& added() const { return added_; }

 private:
  size_t index(std::string_view name) const {
    const int found = find_argument(signature_, name);
    assert(found >= 0);
    return static_cast<size_t>(found);
  }
  std::span<double> line(size_t i) const {
    std::vector<double>& reals = values_[i].tensor.reals;
    return signature_[i].shape.size() == 2 ? std::span(reals).subspan(row_ * width_, width_) : std::span(reals);
  }

  const Signature& signature_;
  std::vector<HostValue>& values_;
  std::vector<std::vector<double>>* terms_;
  size_t width_, row_;
  Sums added_;
  std::vector<double> unused_;
};

}  // namespace

RowInterface RowSpec::interface(Direction direction) const {
  RowInterface forward = forward_interface();
  if (direction == Direction::kForward) return forward;
  RowInterface backward{forward.width, {}, {}};
  for (const RowOperand& input : forward.inputs) {
    if (input.in_gradient) backward.inputs.push_back(input);
    if (!has_elements(input)) continue;
    const bool row = input.kind == RowOperandKind::kRow;
    backward.outputs.push_back({gradient_name(input), row ? RowOperandKind::kRow : RowOperandKind::kColumnSum,
                                input.dtype, row ? "gradient of the rows" : "gradient, summed over all rows"});
  }
  const auto behind_rows = std::find_if(backward.inputs.begin(), backward.inputs.end(),
                                        [](const RowOperand& input) { return input.kind != RowOperandKind::kRow; });
  std::vector<RowOperand> gradients;
  for (const RowOperand& output : forward.outputs)
    gradients.push_back({gradient_name(output), output.kind, output.dtype, "gradient of the result"});
  backward.inputs.insert(behind_rows, gradients.begin(), gradients.end());
  return backward;
}

bool RowSpec::has_vectors() const {
  const std::vector<RowOperand> inputs = forward_interface().inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const RowOperand& input) { return input.kind == RowOperandKind::kVector; });
}

int64_t RowSpec::vector_alignment(DataType dtype) const {
  const auto together = alignment() / static_cast<int64_t>(size_of(this->dtype()));
  return std::min<int64_t>(16, together * static_cast<int64_t>(size_of(dtype)));
}

Signature RowSpec::signature(Direction direction) const {
  const RowInterface interface = this->interface(direction);
  const auto argument = [&](const RowOperand& operand, ArgumentRole role) {
    Argument result;
    result.name = operand.name;
    result.role = role;
    result.doc = operand.doc;
    if (!has_elements(operand)) {
      result.kind = ArgumentKind::kFloat;
      return result;
    }
    const bool row = operand.kind == RowOperandKind::kRow;
    result.dtype = operand.dtype;
    if (row) result.shape.push_back(Dimension::of(std::string(kSequenceAxis)));
    result.shape.push_back(Dimension::constant(interface.width));
    const int64_t loaded = row ? alignment() : vector_alignment(operand.dtype);
    result.accumulated = operand.kind == RowOperandKind::kColumnSum;
    result.alignment = static_cast<int>(result.accumulated ? int64_t(size_of(operand.dtype)) : loaded);
    return result;
  };
  Signature signature;
  for (const RowOperand& input : interface.inputs) signature.push_back(argument(input, ArgumentRole::kInput));
  for (const RowOperand& output : interface.outputs) signature.push_back(argument(output, ArgumentRole::kOutput));
  return signature;
}

Work RowSpec::work(Direction direction, const Lengths& lengths) const {
  const RowInterface interface = this->interface(direction);
  const int64_t rows = lengths.total_rows();
  Work work;
  work.flops = operations(direction) * static_cast<double>(rows) * static_cast<double>(interface.width);
  for (const RowOperand& input : interface.inputs) work.bytes += bytes_of(input, rows, interface.width);
  for (const RowOperand& output : interface.outputs) work.bytes += bytes_of(output, rows, interface.width);
  return work;
}

std::vector<HostValue> RowSpec::make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const {
  const RowInterface interface = this->interface(direction);
  std::vector<HostValue> values;
  for (const RowOperand& input : interface.inputs) {
    HostValue value;
    if (has_elements(input)) {
      value.tensor = elements_of(input, lengths.total_rows(), interface.width, seed, values.size());
    } else {
      value.scalar = input.usual;
    }
    values.push_back(std::move(value));
  }
  values.resize(interface.inputs.size() + interface.outputs.size());
  return values;
}

void RowSpec::visit_rows(Direction direction, std::vector<HostValue>& values,
                         std::vector<std::vector<double>>* terms) const {
  const Signature signature = this->signature(direction);
  const auto width = static_cast<size_t>(interface(direction).width);
  const size_t rows = values.front().tensor.reals.size() / width;
  for (size_t i = 0; i < signature.size(); ++i) {
    if (signature[i].role != ArgumentRole::kOutput) continue;
    HostTensor& tensor = values[i].tensor;
    const bool row = signature[i].shape.size() == 2;
    tensor.shape.clear();
    if (row) tensor.shape.push_back(static_cast<int64_t>(rows));
    tensor.shape.push_back(static_cast<int64_t>(width));
    tensor.reals.assign((row ? rows : 1) * width, 0);
    if (terms != nullptr) (*terms)[i].assign(row ? rows * width : 0, 0);
  }
  const size_t block = std::max<size_t>(1, static_cast<size_t>(kMinElements) / width);
  const size_t blocks = (rows + block - 1) / block;
  // In float64 the order in which blocks are added is no matter.
  std::mutex adding;
  parallel_for(blocks, threads_for(static_cast<int64_t>(blocks), 1), [&](int, size_t number) {
    RowOfValues::Sums sums;
    for (size_t index = number * block; index < std::min(rows, (number + 1) * block); ++index) {
      RowOfValues row(signature, values, terms, width, index);
      reference_row(direction, row);
      for (const auto& [name, added] : row.added()) {
        std::vector<double>& sum = sums[name];
        sum.resize(width, 0);
        for (size_t i = 0; i < width; ++i) sum[i] += added[i];
      }
    }
    const std::lock_guard lock(adding);
    for (const auto& [name, sum] : sums) {
      std::vector<double>& total = values[static_cast<size_t>(find_argument(signature, name))].tensor.reals;
      for (size_t i = 0; i < width; ++i) total[i] += sum[i];
    }
  });
}

void RowSpec::reference(Direction direction, const Lengths&, std::vector<HostValue>& values) const {
  visit_rows(direction, values, nullptr);
}

std::vector<std::vector<double>> RowSpec::error_variances(Direction direction, const std::vector<HostValue>& inputs,
                                                          const std::vector<bool>&) const {
  // Sums of a row and reciprocal roots, in fp32, are off by a few units in the last place.
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
  const std::string place = join_path(path, "alignment");
  if (!std::has_single_bit(static_cast<uint64_t>(params.alignment))) {
    mistakes.check(place, value_error(place, params.alignment, "2, 4, 8 or 16"));
  } else if (params.alignment < element) {
    mistakes.check(place, Status(Code::kInvalidConfig,
                                 fmt::format("{} is {}, but an element of {} has {} bytes; allowed: a power of two "
                                             "from {} to 16",
                                             place, params.alignment, to_string(params.dtype), element, element)));
  }
  if (params.weight_dtype != DataType::kFp32 && params.weight_dtype != params.dtype) {
    const std::string type = join_path(path, "weight_dtype");
    mistakes.check(
        type, Status(Code::kInvalidConfig, fmt::format("{} is {}, but rows are {}; allowed: fp32, or the "
                                                       "type of rows",
                                                       type, to_string(params.weight_dtype), to_string(params.dtype))));
  }
}

void make_canonical(RowParams& params, bool has_vectors) {
  const int64_t row_bytes = params.width * static_cast<int64_t>(size_of(params.dtype));
  params.alignment = std::min(params.alignment, row_bytes & -row_bytes);
  if (!has_vectors) params.weight_dtype = RowParams().weight_dtype;
}

}  // namespace hstujit
