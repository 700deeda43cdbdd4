#include "operations/tuning/data/problem_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "compiler/spec/closeness.h"
#include "compiler/spec/rounding.h"
#include "operations/tuning/data/strided_data.h"

namespace hstujit {

namespace {

int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

// What is wrong with an output of integers; empty when nothing is.
std::string integer_mistake(const Argument& argument, const std::vector<int64_t>& actual,
                            const std::vector<int64_t>& expected) {
  const auto [at, wanted] = std::mismatch(actual.begin(), actual.end(), expected.begin());
  if (at == actual.end()) return "";
  return fmt::format("{}: element {} is {}; the reference has {}", argument.name, at - actual.begin(), *at, *wanted);
}

using Symbols = std::map<std::string, int64_t>;

// Every symbol is known.
int64_t size_of_dimension(const Dimension& dimension, const ProblemData& problem, const Symbols& symbols) {
  if (dimension.is_constant()) return dimension.bias;
  const int64_t value = dimension.symbol.empty() ? 0 : symbols.at(dimension.symbol);
  if (!dimension.follows_integer()) return dimension.size(value);
  const int index = find_argument(problem.signature, dimension.integer);
  const double rows = index < 0 ? 0 : problem.values[static_cast<size_t>(index)].scalar;
  return dimension.integer_size(value, static_cast<int64_t>(rows)).value_or(0);
}

int64_t sum(const std::vector<int64_t>& values) { return std::accumulate(values.begin(), values.end(), int64_t{0}); }

// Elements of a row of the widest argument.
int64_t widest_row(const Signature& signature) {
  int64_t widest = 1;
  for (const Argument& argument : signature) {
    if (has_rows(argument)) widest = std::max(widest, part_elements(argument, 1));
  }
  return widest;
}

// The leading sequences that have so many rows together, with inputs of at most so many elements in the parts that each
// sequence has. One that has rows is among them, where there is any.
Lengths leading(const Lengths& lengths, int64_t rows, const Signature& signature, int64_t elements) {
  int64_t max = elements;
  for (const Argument& argument : signature) {
    if (argument.role == ArgumentRole::kInput && has_parts(argument))
      max = std::min(max, elements / std::max<int64_t>(part_elements(argument, lengths.max_seq_len), 1));
  }
  Lengths first;
  first.max_seq_len = lengths.max_seq_len;
  // Where nothing begins or ends with a sequence, a part of one is as good.
  const bool whole = std::any_of(signature.begin(), signature.end(),
                                 [](const Argument& argument) { return has_sequence_rows(argument); });
  if (!whole) {
    first.rows = {std::min(rows, lengths.total_rows())};
    return first;
  }
  int64_t taken = 0;
  for (size_t i = 0; i < lengths.rows.size() && taken < rows; ++i) {
    if (static_cast<int64_t>(i) >= max && taken > 0) break;
    taken += lengths.rows[i];
    first.rows.push_back(lengths.rows[i]);
    if (!lengths.num_targets.empty()) first.num_targets.push_back(lengths.num_targets[i]);
    if (!lengths.num_contexts.empty()) first.num_contexts.push_back(lengths.num_contexts[i]);
    for (const auto& [axis, all] : lengths.other_rows) first.other_rows[axis].push_back(all[i]);
  }
  return first;
}

// Whether the argument's data for all sequences follow from those for the first ones: rows can be repeated, and numbers
// of the sequences follow from the lengths.
bool repeatable(const Argument& argument, const Lengths& first, const Lengths& all) {
  if (argument.kind != ArgumentKind::kTensor || argument.semantic == Semantic::kCounts) return true;
  if (rows_between(argument, all) != nullptr || has_parts(argument)) return true;
  if (has_rows(argument)) return sum(sequence_rows(argument, first)) > 0 || sum(sequence_rows(argument, all)) == 0;
  return std::all_of(argument.shape.begin(), argument.shape.end(),
                     [](const Dimension& dimension) { return dimension.is_constant(); });
}

// Whether the argument has an element for each row beside others, as attn_func, which has rows behind its numbers.
bool has_inner_rows(const Argument& argument) {
  return argument.kind == ArgumentKind::kTensor &&
         std::any_of(argument.shape.begin() + (argument.shape.empty() ? 0 : 1), argument.shape.end(),
                     [](const Dimension& dimension) { return dimension.is_jagged(); });
}

BatchSize size_of_batch(const Lengths& lengths) {
  BatchSize size{static_cast<int64_t>(lengths.rows.size()), lengths.total_rows()};
  for (const auto& [axis, rows] : lengths.other_rows) size.other_rows.emplace(axis, sum(rows));
  return size;
}

}  // namespace

Result<Lengths> draw_lengths(const Instance& instance, Direction direction, int64_t max_seq_len, DrawnFor use,
                             int64_t max_rows) {
  const BatchSize batch = batch_size(instance, max_seq_len, max_rows);
  HSTUJIT_RETURN_IF_ERROR(check_data_memory(*instance.spec, direction, batch, max_seq_len, use));
  return make_lengths(instance, max_seq_len, max_rows);
}

Result<ProblemData> make_problem_data(OpSpecPtr spec, Direction direction, const Lengths& lengths, uint64_t seed,
                                      int64_t extra_rows, std::optional<double> alpha) {
  ProblemData problem;
  problem.spec = std::move(spec);
  problem.direction = direction;
  problem.lengths = lengths;
  problem.signature = problem.spec->signature(direction);
  HSTUJIT_RETURN_IF_ERROR(
      check_data_memory(*problem.spec, direction, size_of_batch(lengths), lengths.max_seq_len, DrawnFor::kRunning));
  problem.values = problem.spec->make_inputs(direction, lengths, seed);
  const bool fixed = every_row_counts(problem.signature) || std::ranges::any_of(problem.signature, has_inner_rows);
  problem.extra_rows = fixed ? 0 : extra_rows;

  const size_t count = problem.signature.size();
  problem.values.resize(count);
  const int alpha_index = find_argument(problem.signature, "alpha");
  if (alpha && alpha_index >= 0 && problem.signature[alpha_index].kind == ArgumentKind::kFloat) {
    problem.values[alpha_index].scalar = *alpha;
  }
  problem.shapes.resize(count);
  problem.images.resize(count);
  Symbols symbols;
  for (size_t i = 0; i < count; ++i) {
    const Argument& argument = problem.signature[i];
    if (argument.kind != ArgumentKind::kTensor || argument.role == ArgumentRole::kOutput) continue;
    const HostTensor& tensor = problem.values[i].tensor;
    if (tensor.shape.size() != argument.shape.size()) {
      return Status(Code::kInternal, fmt::format("the input {} of {} has no data", argument.name, problem.spec->op()));
    }
    for (size_t d = 0; d < argument.shape.size(); ++d) {
      const Dimension& dimension = argument.shape[d];
      if (dimension.is_constant() || dimension.follows_integer()) continue;
      const std::optional<int64_t> value = dimension.symbol_value(tensor.shape[d]);
      if (!value) {
        return Status(Code::kInternal,
                      fmt::format("dimension {} of the input {} of {} has size {}", to_string(dimension), argument.name,
                                  problem.spec->op(), tensor.shape[d]));
      }
      symbols[dimension.symbol] = *value;
    }
  }
  for (const auto& [symbol, size] : problem.spec->generated_sizes(lengths)) symbols.emplace(symbol, size);
  for (const auto& [axis, rows] : lengths.other_rows) symbols.emplace(axis, sum(rows));
  symbols.emplace(kSequenceAxis, lengths.total_rows());
  for (size_t i = 0; i < count; ++i) {
    const Argument& argument = problem.signature[i];
    if (argument.kind != ArgumentKind::kTensor) continue;
    std::vector<int64_t>& shape = problem.shapes[i];
    for (const Dimension& dimension : argument.shape) {
      if (!dimension.symbol.empty() && !symbols.contains(dimension.symbol)) {
        return Status(Code::kInternal, fmt::format("no input of {} says how large {} of {} is", problem.spec->op(),
                                                   to_string(dimension), argument.name));
      }
      shape.push_back(size_of_dimension(dimension, problem, symbols));
    }
    if (argument.role == ArgumentRole::kInput && shape != problem.values[i].tensor.shape) {
      return Status(Code::kInternal,
                    fmt::format("the input {} of {} has shape ({}); it must be ({})", argument.name, problem.spec->op(),
                                fmt::join(problem.values[i].tensor.shape, ", "), fmt::join(shape, ", ")));
    }
    if (has_rows(argument) && shape[0] != sum(sequence_rows(argument, lengths))) {
      return Status(Code::kInternal, fmt::format("{} of {} has {} rows; the sequences have {} together", argument.name,
                                                 problem.spec->op(), shape[0], sum(sequence_rows(argument, lengths))));
    }
    if (has_jagged_rows(argument)) shape[0] += problem.extra_rows;
    const size_t bytes = static_cast<size_t>(elements_of(shape)) * size_of(argument.dtype);
    std::vector<std::byte>& image = problem.images[i];
    if (argument.role == ArgumentRole::kInput) image = pack(problem.values[i].tensor, argument.dtype);
    image.resize(bytes, std::byte{kPoison});
  }
  align_rows(problem);
  return problem;
}

Result<ProblemData> make_timing_data(OpSpecPtr spec, Direction direction, const Lengths& lengths, uint64_t seed,
                                     std::optional<double> alpha) {
  constexpr int64_t kDistinctRows = 8192;
  constexpr int64_t kDistinctRowElements = int64_t{1} << 22;
  constexpr int64_t kDistinctElements = int64_t{1} << 25;
  const Signature signature = spec->signature(direction);
  const int64_t rows = std::clamp<int64_t>(kDistinctRowElements / widest_row(signature), 1, kDistinctRows);
  const Lengths first = leading(lengths, rows, signature, kDistinctElements);
  // An operator that has other tensors of the batch's size gets all of its data.
  if (first.rows == lengths.rows || !std::all_of(signature.begin(), signature.end(), [&](const Argument& argument) {
        return repeatable(argument, first, lengths);
      })) {
    return make_problem_data(std::move(spec), direction, lengths, seed, 0, alpha);
  }

  HSTUJIT_RETURN_IF_ERROR(
      check_data_memory(*spec, direction, size_of_batch(lengths), lengths.max_seq_len, DrawnFor::kTiming));
  HSTUJIT_ASSIGN_OR_RETURN(ProblemData problem, make_problem_data(std::move(spec), direction, first, seed, 0, alpha));
  problem.lengths = lengths;
  for (const std::vector<std::byte>& image : problem.images) problem.sizes.push_back(image.size());
  for (size_t i = 0; i < signature.size(); ++i) {
    const Argument& argument = signature[i];
    std::vector<std::byte>& image = problem.images[i];
    const std::vector<int64_t>* const counted = rows_between(argument, lengths);
    const auto longest = lengths.other_rows.find(argument.axis);
    if (argument.semantic == Semantic::kMaxRows && longest != lengths.other_rows.end() && !longest->second.empty()) {
      // The first sequences need not have the most.
      problem.values[i].scalar = static_cast<double>(*std::max_element(longest->second.begin(), longest->second.end()));
    } else if (counted != nullptr || argument.semantic == Semantic::kCounts) {
      HostTensor tensor;
      tensor.integers = counted != nullptr ? offsets_of(*counted) : lengths.counts_of(argument.name);
      if (counted == nullptr) tensor.integers.resize(lengths.rows.size(), 0);
      tensor.shape = problem.shapes[i] = {static_cast<int64_t>(tensor.integers.size())};
      image = pack(tensor, argument.dtype);
      problem.sizes[i] = image.size();
    } else if (has_rows(argument) || has_parts(argument)) {
      const int64_t drawn = problem.shapes[i][0];
      const int64_t total =
          has_parts(argument) ? static_cast<int64_t>(lengths.rows.size()) : sum(sequence_rows(argument, lengths));
      if (drawn > 0) problem.sizes[i] = image.size() / static_cast<size_t>(drawn) * static_cast<size_t>(total);
      problem.shapes[i][0] = total;
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
    DLTensor& tensor = tensors_[i];
    tensor.data = data[i];
    tensor.device = device;
    tensor.ndim = static_cast<int32_t>(shapes_[i].size());
    tensor.dtype = dlpack_type(argument.dtype);
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
  ReferenceComparison comparison(*problem.spec, problem.direction, problem.lengths, problem.values, reference);
  const auto fail = [&](std::string sentence) {
    if (agreement.sentence.empty()) agreement.sentence = std::move(sentence);
  };
  for (size_t i = 0; i < problem.signature.size(); ++i) {
    const Argument& argument = problem.signature[i];
    if (argument.role != ArgumentRole::kOutput) continue;
    const std::vector<double>& expected = reference[i].tensor.reals;
    const std::vector<int64_t>& integers = reference[i].tensor.integers;
    const size_t used = (is_integer(argument.dtype) ? integers.size() : expected.size()) * size_of(argument.dtype);
    std::vector<std::byte> packed;
    std::span<const std::byte> bytes = outputs[i];
    if (is_strided(problem, i)) {
      auto gathered = gather(problem, i, outputs[i]);
      if (!gathered.ok()) {
        fail(gathered.status().message());
        continue;
      }
      bytes = packed = std::move(*gathered);
    }
    if (bytes.size() < used) {
      fail(fmt::format("{} has {} bytes; the reference has {}", argument.name, bytes.size(), used));
      continue;
    }
    if (std::any_of(bytes.begin() + static_cast<std::ptrdiff_t>(used), bytes.end(),
                    [](std::byte byte) { return byte != std::byte{kPoison}; })) {
      fail(fmt::format("{} was written after the last sequence", argument.name));
    }
    bytes = bytes.first(used);
    if (is_integer(argument.dtype)) {
      const HostTensor tensor = unpack(bytes, argument.dtype, reference[i].tensor.shape);
      if (std::string mistake = integer_mistake(argument, tensor.integers, integers); !mistake.empty()) {
        fail(std::move(mistake));
      }
      continue;
    }
    Closeness closeness = comparison.of(i, bytes);
    agreement.error = std::max(agreement.error, closeness.error);
    if (!closeness.good()) fail(std::move(closeness.mistake));
  }
  return agreement;
}

}  // namespace hstujit
