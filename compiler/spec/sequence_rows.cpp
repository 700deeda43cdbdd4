#include "compiler/spec/sequence_rows.h"

#include <algorithm>
#include <limits>

namespace hstujit {

namespace {

// The rows of a problem without sequences, which generated calls have in as many parts as their lengths say.
bool is_plain(const Dimension& dimension) {
  const bool rows = dimension.symbol == kSequenceAxis || dimension.symbol == kQueryAxis;
  return rows && !dimension.is_jagged() && dimension.bias == 0;
}

}  // namespace

bool has_sequences(const Signature& signature) { return find_argument(signature, Semantic::kOffsets) >= 0; }

bool has_max_seq_len(const Signature& signature) {
  return find_argument(signature, Semantic::kMaxRows, kSequenceAxis) >= 0;
}

bool has_rows(const Argument& argument) {
  return argument.kind == ArgumentKind::kTensor && !argument.shape.empty() &&
         (argument.shape[0].is_jagged() || argument.shape[0].is_uniform() || is_plain(argument.shape[0]));
}

bool has_sequence_rows(const Argument& argument) { return has_rows(argument) && !is_plain(argument.shape[0]); }

bool has_jagged_rows(const Argument& argument) { return has_rows(argument) && argument.shape[0].is_jagged(); }

bool every_row_counts(const Signature& signature) {
  const auto is_of_jagged_axis = [&](const Argument& plain) {
    return has_rows(plain) && is_plain(plain.shape[0]) &&
           find_argument(signature, Semantic::kOffsets, plain.shape[0].symbol) >= 0;
  };
  return std::any_of(signature.begin(), signature.end(), is_of_jagged_axis);
}

// A uniform axis has as many rows of each sequence: an operator has one at most.
std::string_view row_axis(const Dimension& dimension) {
  return dimension.is_uniform() ? kQueryAxis : std::string_view(dimension.symbol);
}

std::string_view row_axis(const Argument& argument) { return row_axis(argument.shape[0]); }

const std::vector<int64_t>& sequence_rows(const Argument& argument, const Lengths& lengths) {
  return lengths.rows_of(row_axis(argument));
}

bool has_parts(const Argument& argument) {
  return argument.kind == ArgumentKind::kTensor && !is_integer(argument.dtype) && argument.shape.size() > 1 &&
         to_string(argument.shape[0]) == "B";
}

int64_t part_elements(const Argument& argument, int64_t max_seq_len) {
  int64_t elements = 1;
  for (size_t d = 1; d < argument.shape.size(); ++d) {
    const Dimension& dimension = argument.shape[d];
    int64_t size = dimension.is_constant() ? dimension.bias : 1;
    if (dimension.is_scalar() && dimension.integer == "max_seq_len") size = max_seq_len;
    if (__builtin_mul_overflow(elements, size, &elements)) return std::numeric_limits<int64_t>::max();
  }
  return elements;
}

const std::vector<int64_t>* rows_between(const Argument& offsets, const Lengths& lengths) {
  if (offsets.semantic != Semantic::kOffsets) return nullptr;
  return &lengths.rows_of(offsets.axis);
}

}  // namespace hstujit
