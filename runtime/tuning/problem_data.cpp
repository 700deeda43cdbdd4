#include "runtime/tuning/problem_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compiler/spec/rounding.h"

namespace hstujit {

namespace {

bool is_integer(DataType type) { return type == DataType::kInt32 || type == DataType::kInt64; }

int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

// Rows of jagged tensors are those with this symbol in front.
constexpr char kRowSymbol[] = "L";

// The error of elements [begin, end), as compare's comment defines it; `floor` is that of one element.
double error_of(const std::vector<double>& output, const std::vector<double>& reference, int64_t begin, int64_t end,
                double floor) {
  double difference = 0;
  double norm = 0;
  for (int64_t i = begin; i < end; ++i) {
    const double distance = output[i] - reference[i];
    if (!std::isfinite(distance)) return std::numeric_limits<double>::infinity();
    difference += distance * distance;
    norm += reference[i] * reference[i];
  }
  if (difference == 0) return 0;
  return std::sqrt(difference) / (std::sqrt(norm) + std::sqrt(static_cast<double>(end - begin)) * floor);
}

// What is wrong with an output of integers; empty when nothing is.
std::string integer_mistake(const Argument& argument, const std::vector<int64_t>& actual,
                            const std::vector<int64_t>& expected) {
  const auto [at, wanted] = std::mismatch(actual.begin(), actual.end(), expected.begin());
  if (at == actual.end()) return "";
  return fmt::format("{}: element {} is {}; the reference has {}", argument.name, at - actual.begin(), *at, *wanted);
}

}  // namespace

bool has_rows(const Argument& argument) {
  return argument.kind == ArgumentKind::kTensor && !argument.shape.empty() && argument.shape[0].is(kRowSymbol);
}

int64_t ProblemData::rows() const {
  int64_t total = 0;
  for (const int64_t rows : lengths.rows) total += rows;
  return total;
}

Result<ProblemData> make_problem_data(OpSpecPtr spec, Direction direction, const Lengths& lengths, uint64_t seed,
                                      int64_t extra_rows, std::optional<double> alpha) {
  ProblemData problem;
  problem.spec = std::move(spec);
  problem.direction = direction;
  problem.lengths = lengths;
  problem.signature = problem.spec->signature(direction);
  problem.values = problem.spec->make_inputs(direction, lengths, seed);
  if (find_argument(problem.signature, "seq_offsets") >= 0) problem.extra_rows = extra_rows;

  const size_t count = problem.signature.size();
  problem.values.resize(count);
  const int alpha_index = find_argument(problem.signature, "alpha");
  if (alpha && alpha_index >= 0 && problem.signature[alpha_index].kind == ArgumentKind::kFloat) {
    problem.values[alpha_index].scalar = *alpha;
  }
  problem.shapes.resize(count);
  problem.images.resize(count);
  std::map<std::string, int64_t> symbols;
  for (size_t i = 0; i < count; ++i) {
    const Argument& argument = problem.signature[i];
    if (argument.kind != ArgumentKind::kTensor || argument.role == ArgumentRole::kOutput) continue;
    const HostTensor& tensor = problem.values[i].tensor;
    if (tensor.shape.size() != argument.shape.size()) {
      return Status(Code::kInternal, fmt::format("the input {} of {} has no data", argument.name, problem.spec->op()));
    }
    for (size_t d = 0; d < argument.shape.size(); ++d) {
      const Dimension& dimension = argument.shape[d];
      if (dimension.is_constant()) continue;
      const std::optional<int64_t> value = dimension.symbol_value(tensor.shape[d]);
      if (!value) {
        return Status(Code::kInternal,
                      fmt::format("dimension {} of the input {} of {} has size {}", to_string(dimension), argument.name,
                                  problem.spec->op(), tensor.shape[d]));
      }
      symbols[dimension.symbol] = *value;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const Argument& argument = problem.signature[i];
    if (argument.kind != ArgumentKind::kTensor) continue;
    std::vector<int64_t>& shape = problem.shapes[i];
    for (const Dimension& dimension : argument.shape) {
      if (!dimension.is_constant() && !symbols.contains(dimension.symbol)) {
        return Status(Code::kInternal, fmt::format("no input of {} says how large {} of {} is", problem.spec->op(),
                                                   to_string(dimension), argument.name));
      }
      shape.push_back(dimension.size(dimension.is_constant() ? 0 : symbols[dimension.symbol]));
    }
    if (has_rows(argument)) shape[0] += problem.extra_rows;
    const size_t bytes = static_cast<size_t>(elements_of(shape)) * size_of(argument.dtype);
    std::vector<std::byte>& image = problem.images[i];
    if (argument.role == ArgumentRole::kInput) image = pack(problem.values[i].tensor, argument.dtype);
    image.resize(bytes, std::byte{kPoison});
  }
  return problem;
}

Result<ProblemData> make_timing_data(OpSpecPtr spec, Direction direction, const Lengths& lengths, uint64_t seed,
                                     std::optional<double> alpha) {
  constexpr int64_t kDistinctRows = 8192;
  Lengths first;
  first.max_seq_len = lengths.max_seq_len;
  int64_t rows = 0;
  for (size_t i = 0; i < lengths.rows.size() && rows < kDistinctRows; ++i) {
    rows += lengths.rows[i];
    first.rows.push_back(lengths.rows[i]);
    if (!lengths.num_targets.empty()) first.num_targets.push_back(lengths.num_targets[i]);
  }
  // Only tensors of rows can be repeated; an operator that has others of the batch's size gets all of its data.
  const Signature signature = spec->signature(direction);
  const auto repeatable = [](const Argument& argument) {
    if (argument.kind != ArgumentKind::kTensor || has_rows(argument)) return true;
    if (argument.name == "seq_offsets" || argument.name == "num_targets") return true;
    return std::all_of(argument.shape.begin(), argument.shape.end(),
                       [](const Dimension& dimension) { return dimension.is_constant(); });
  };
  if (rows == 0 || first.rows.size() == lengths.rows.size() ||
      !std::all_of(signature.begin(), signature.end(), repeatable)) {
    return make_problem_data(std::move(spec), direction, lengths, seed, 0, alpha);
  }

  HSTUJIT_ASSIGN_OR_RETURN(ProblemData problem, make_problem_data(std::move(spec), direction, first, seed, 0, alpha));
  problem.lengths = lengths;
  const int64_t total = problem.rows();
  for (size_t i = 0; i < signature.size(); ++i) {
    const Argument& argument = signature[i];
    std::vector<std::byte>& image = problem.images[i];
    if (argument.name == "seq_offsets" || argument.name == "num_targets") {
      HostTensor tensor;
      if (argument.name == "seq_offsets") {
        tensor.integers = {0};
        for (const int64_t n : lengths.rows) tensor.integers.push_back(tensor.integers.back() + n);
      } else {
        tensor.integers = lengths.num_targets;
        tensor.integers.resize(lengths.rows.size(), 0);
      }
      tensor.shape = problem.shapes[i] = {static_cast<int64_t>(tensor.integers.size())};
      image = pack(tensor, argument.dtype);
    } else if (has_rows(argument)) {
      const size_t bytes = image.size() / static_cast<size_t>(rows) * static_cast<size_t>(total);
      problem.shapes[i][0] = total;
      std::vector<std::byte> repeated(bytes);
      for (size_t begin = 0; begin < bytes; begin += image.size()) {
        std::copy_n(image.begin(), std::min(image.size(), bytes - begin),
                    repeated.begin() + static_cast<std::ptrdiff_t>(begin));
      }
      image = std::move(repeated);
    }
  }
  return problem;
}

LaunchValues::LaunchValues(const ProblemData& problem, const std::vector<void*>& data, DLDevice device)
    : shapes_(problem.shapes),
      strides_(problem.strides),
      tensors_(problem.signature.size()),
      values_(problem.signature.size()) {
  for (size_t i = 0; i < values_.size(); ++i) {
    const Argument& argument = problem.signature[i];
    const double scalar = problem.values[i].scalar;
    if (argument.kind == ArgumentKind::kFloat) values_[i].real = scalar;
    if (argument.kind == ArgumentKind::kInt) values_[i].integer = static_cast<int64_t>(scalar);
    if (argument.kind != ArgumentKind::kTensor) continue;
    const uint8_t code = is_integer(argument.dtype) ? kDLInt : argument.dtype == DataType::kBf16 ? kDLBfloat : kDLFloat;
    DLTensor& tensor = tensors_[i];
    tensor.data = data[i];
    tensor.device = device;
    tensor.ndim = static_cast<int32_t>(shapes_[i].size());
    tensor.dtype = {code, static_cast<uint8_t>(8 * size_of(argument.dtype)), 1};
    tensor.shape = shapes_[i].data();
    tensor.strides = strides_.empty() || strides_[i].empty() ? nullptr : strides_[i].data();
    tensor.byte_offset = problem.offsets.empty() ? 0 : problem.offsets[i];
    values_[i].tensor = &tensor;
  }
}

std::vector<HostValue> reference_outputs(const ProblemData& problem) {
  std::vector<HostValue> values = problem.values;
  problem.spec->reference(problem.direction, problem.lengths, values);
  for (size_t i = 0; i < values.size(); ++i) {
    if (problem.signature[i].role == ArgumentRole::kInput) values[i] = {};
  }
  return values;
}

Agreement compare(const ProblemData& problem, const std::vector<HostValue>& reference,
                  const std::vector<std::vector<std::byte>>& outputs) {
  Agreement agreement;
  agreement.bound = problem.spec->error_bound(problem.direction);
  const auto fail = [&](std::string sentence) {
    if (agreement.sentence.empty()) agreement.sentence = std::move(sentence);
  };
  for (size_t i = 0; i < problem.signature.size(); ++i) {
    const Argument& argument = problem.signature[i];
    if (argument.role != ArgumentRole::kOutput) continue;
    const std::vector<double>& expected = reference[i].tensor.reals;
    const std::vector<int64_t>& integers = reference[i].tensor.integers;
    const size_t used = (is_integer(argument.dtype) ? integers.size() : expected.size()) * size_of(argument.dtype);
    const std::vector<std::byte>& bytes = outputs[i];
    if (bytes.size() < used) {
      fail(fmt::format("{} has {} bytes; the reference has {}", argument.name, bytes.size(), used));
      continue;
    }
    if (std::any_of(bytes.begin() + static_cast<std::ptrdiff_t>(used), bytes.end(),
                    [](std::byte byte) { return byte != std::byte{kPoison}; })) {
      fail(fmt::format("{} was written after the last sequence", argument.name));
    }
    const HostTensor tensor = unpack({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(used)}, argument.dtype,
                                     reference[i].tensor.shape);
    if (is_integer(argument.dtype)) {
      if (std::string mistake = integer_mistake(argument, tensor.integers, integers); !mistake.empty()) {
        fail(std::move(mistake));
      }
      continue;
    }
    const std::vector<double>& actual = tensor.reals;
    // A bound of 0 asks for the very bits.
    const double floor = agreement.bound > 0 ? smallest_step(argument.dtype) / agreement.bound : 0;
    const double error = error_of(actual, expected, 0, static_cast<int64_t>(expected.size()), floor);
    agreement.error = std::max(agreement.error, error);
    if (!(error <= agreement.bound)) {
      fail(std::isinf(error) ? fmt::format("{} has elements that are not numbers or were not written", argument.name)
                             : fmt::format("{} differs from the float64 reference by {:.3g}; at most {:.3g} is allowed",
                                           argument.name, error, agreement.bound));
    }
    if (!has_rows(argument) || problem.rows() == 0) continue;
    const int64_t width = static_cast<int64_t>(expected.size()) / problem.rows();
    int64_t row = 0;
    for (size_t sequence = 0; sequence < problem.lengths.rows.size(); ++sequence) {
      const int64_t end = row + problem.lengths.rows[sequence];
      const double part = error_of(actual, expected, row * width, end * width, floor);
      if (!(part <= kSequenceSlack * agreement.bound)) {
        fail(fmt::format(
            "{}: sequence {} of {} rows differs from the float64 reference by {:.3g}; at most {:.3g} is allowed",
            argument.name, sequence, end - row, part, kSequenceSlack * agreement.bound));
      }
      row = end;
    }
  }
  return agreement;
}

}  // namespace hstujit
