#include "compiler/spec/closeness.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/spec/rounding.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/parallel.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// -log of the probability with which a right implementation may exceed the norm.
constexpr double kTail = 20;

// Elements that a thread compares at a time.
constexpr size_t kPiece = size_t{1} << 16;

double error_of(double difference, double measure) {
  if (difference == 0) return 0;
  return measure > 0 ? difference / measure : kInfinity;
}

}  // namespace

ReferenceComparison::ReferenceComparison(const OpSpec& spec, Direction direction, const Lengths& lengths,
                                         const std::vector<HostValue>& inputs, const std::vector<HostValue>& reference)
    : spec_(spec),
      direction_(direction),
      lengths_(lengths),
      inputs_(inputs),
      reference_(reference),
      signature_(spec.signature(direction)),
      bound_(spec.error_bound(direction)),
      known_(lengths.rows.size(), false) {}

void ReferenceComparison::Squares::add(const Squares& other) {
  difference += other.difference;
  reference += other.reference;
  elements += other.elements;
}

double ReferenceComparison::rounded_up(DataType type, double expected) const {
  return round_to(type, expected * (1 + bound_));
}

ReferenceComparison::Squares ReferenceComparison::squares(size_t index, const Reader& read, const Range& range) const {
  const std::vector<double>& reference = reference_[index].tensor.reals;
  const bool sparse = has_parts(signature_[index]);
  const DataType type = signature_[index].dtype;
  Squares sums;
  std::array<double, 1024> buffer;
  for (size_t begin = range.begin; begin < range.end; begin += buffer.size()) {
    const std::span<double> actual(buffer.data(), std::min(buffer.size(), range.end - begin));
    read(begin, actual);
    for (size_t i = 0; i < actual.size(); ++i) {
      const double expected = reference[begin + i], distance = actual[i] - expected;
      if (!std::isfinite(distance)) {
        if (std::isinf(actual[i]) && rounded_up(type, expected) == actual[i]) continue;
        return {std::isnan(actual[i]) ? kNaN : kInfinity, 0, 0};
      }
      sums.difference += distance * distance;
      sums.reference += expected * expected;
      sums.elements += sparse && expected == 0 ? 0 : 1;
    }
  }
  return sums;
}

// Long ranges are cut for the threads, at the same places whatever their number.
std::vector<ReferenceComparison::Squares> ReferenceComparison::squares(size_t index, const Reader& read,
                                                                       const std::vector<Range>& ranges) const {
  std::vector<Range> pieces;
  std::vector<size_t> owners;
  size_t elements = 0;
  for (size_t range = 0; range < ranges.size(); ++range) {
    for (size_t begin = ranges[range].begin; begin < ranges[range].end; begin += kPiece) {
      pieces.push_back({begin, std::min(begin + kPiece, ranges[range].end)});
      owners.push_back(range);
    }
    elements += ranges[range].end - ranges[range].begin;
  }
  std::vector<Squares> of_pieces(pieces.size()), sums(ranges.size());
  parallel_for(pieces.size(), threads_for(static_cast<int64_t>(elements), kPiece),
               [&](int, size_t piece) { of_pieces[piece] = squares(index, read, pieces[piece]); });
  for (size_t piece = 0; piece < pieces.size(); ++piece) sums[owners[piece]].add(of_pieces[piece]);
  return sums;
}

ReferenceComparison::Norms ReferenceComparison::norms(size_t index, const Squares& squares) const {
  // A bound of 0 asks for the very bits.
  const double step = smallest_step(signature_[index].dtype);
  const double floor = bound_ > 0 ? std::sqrt(squares.elements) * step / bound_ : 0;
  return {std::sqrt(squares.difference), std::sqrt(squares.reference) + floor};
}

void ReferenceComparison::learn(std::vector<bool> sequences) {
  sequences.resize(known_.size(), sequences.empty());
  for (size_t b = 0; b < known_.size(); ++b) {
    sequences[b] = sequences[b] && !known_[b];
    known_[b] = known_[b] || sequences[b];
  }
  if (std::find(sequences.begin(), sequences.end(), true) == sequences.end()) return;
  const std::vector<std::vector<double>> learned = spec_.error_variances(direction_, inputs_, sequences);
  variances_.resize(learned.size());
  for (size_t i = 0; i < learned.size(); ++i) {
    variances_[i].resize(learned[i].size());
    for (size_t element = 0; element < learned[i].size(); ++element) variances_[i][element] += learned[i][element];
  }
}

// With independent errors that are sub-Gaussian, groups of which have the variances E and are otherwise independent,
// the square of their norm exceeds sum(E) + 2 sqrt(t sum(E^2)) + 2 t max(E) with probability e^-t at most. A group is a
// row of the innermost axis: what one row of a head has in common.
double ReferenceComparison::rounding(size_t index, const Range& range) const {
  if (index >= variances_.size() || variances_[index].empty()) return 0;
  const HostTensor& reference = reference_[index].tensor;
  const DataType type = signature_[index].dtype;
  const double unit = unit_roundoff(type), step = smallest_step(type);
  const auto width = reference.shape.size() > 1 ? static_cast<size_t>(reference.shape.back()) : 1;
  double sum = 0, squares = 0, largest = 0;
  for (size_t begin = range.begin; begin < range.end; begin += width) {
    double group = 0;
    for (size_t i = begin; i < std::min(begin + width, range.end); ++i) {
      const double value = reference.reals[i], variance = variances_[index][i];
      if (std::isinf(rounded_up(type, value))) continue;  // the infinity that is right there has no share in the error
      if (value != 0 || variance != 0) group += variance + rounding_variance(value, unit) + step * step / 12;
    }
    sum += group;
    squares += group * group;
    largest = std::max(largest, group);
  }
  return std::sqrt(sum + 2 * std::sqrt(kTail * squares) + 2 * kTail * largest);
}

double ReferenceComparison::rounding(size_t index) {
  learn({});
  return rounding(index, {0, reference_[index].tensor.reals.size()});
}

std::vector<ReferenceComparison::Range> ReferenceComparison::ranges_of_sequences(size_t index) const {
  const Argument& argument = signature_[index];
  const size_t elements = reference_[index].tensor.reals.size();
  const bool parts = has_parts(argument);
  if (!(has_rows(argument) || parts) || elements == 0) return {};
  const std::vector<int64_t>& rows = parts ? lengths_.rows : sequence_rows(argument, lengths_);
  int64_t units = parts ? static_cast<int64_t>(rows.size()) : 0;
  if (!parts) {
    for (const int64_t count : rows) units += count;
  }
  const size_t width = elements / static_cast<size_t>(units);
  std::vector<Range> ranges;
  size_t begin = 0;
  for (const int64_t count : rows) {
    const size_t end = begin + (parts ? 1 : static_cast<size_t>(count)) * width;
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

Closeness ReferenceComparison::of(size_t index, const std::vector<double>& actual) {
  return judge(index, [&](size_t begin, std::span<double> to) { std::copy_n(&actual[begin], to.size(), to.begin()); });
}

Closeness ReferenceComparison::of(size_t index, std::span<const std::byte> actual) {
  const DataType type = signature_[index].dtype;
  return judge(index, [&](size_t begin, std::span<double> to) {
    unpack_reals(actual.subspan(begin * size_of(type), to.size() * size_of(type)), type, to);
  });
}

Closeness ReferenceComparison::judge(size_t index, const Reader& read) {
  const std::string& name = signature_[index].name;
  const Range whole = {0, reference_[index].tensor.reals.size()};
  const std::vector<Range> ranges = ranges_of_sequences(index);
  const std::vector<Squares> of_sequences = squares(index, read, ranges.empty() ? std::vector{whole} : ranges);
  Squares sum;
  for (const Squares& sequence : of_sequences) sum.add(sequence);
  const Norms all = norms(index, sum);
  const auto error = [&](const Norms& norms, const Range& range, double allowed) {
    return error_of(norms.difference, std::max(norms.reference, allowed > 0 ? rounding(index, range) / allowed : 0));
  };
  Closeness closeness{error_of(all.difference, all.reference), ""};
  if (std::isnan(all.difference)) {
    return {kInfinity, fmt::format("{} has elements that are not numbers or were not written", name)};
  }
  if (std::isinf(all.difference)) {
    return {kInfinity, fmt::format("{} is infinite where the float64 reference is in the range of {}, or the reverse",
                                   name, to_string(signature_[index].dtype))};
  }
  if (!(closeness.error <= bound_)) {
    learn({});
    closeness.error = error(all, whole, bound_);
  }
  if (!(closeness.error <= bound_)) {
    closeness.mistake = fmt::format("{} differs from the float64 reference by {:.3g}; at most {:.3g} is allowed", name,
                                    closeness.error, bound_);
    return closeness;
  }

  const double allowed = kSequenceSlack * bound_;
  std::vector<Norms> parts;
  std::vector<bool> far(lengths_.rows.size(), false);
  for (size_t sequence = 0; sequence < ranges.size(); ++sequence) {
    parts.push_back(norms(index, of_sequences[sequence]));
    far[sequence] = !(error_of(parts.back().difference, parts.back().reference) <= allowed);
  }
  if (std::find(far.begin(), far.end(), true) == far.end()) return closeness;
  learn(far);
  for (size_t sequence = 0; sequence < ranges.size(); ++sequence) {
    if (!far[sequence]) continue;
    const double part = error(parts[sequence], ranges[sequence], allowed);
    if (part <= allowed) continue;
    const Argument& argument = signature_[index];
    closeness.mistake = fmt::format(
        "{}: sequence {} of {} differs from the float64 reference by {:.3g}; at most {:.3g} is allowed", name, sequence,
        counted((has_parts(argument) ? lengths_.rows : sequence_rows(argument, lengths_))[sequence], "row"), part,
        allowed);
    return closeness;
  }
  return closeness;
}

}  // namespace hstujit
