#include "compiler/spec/operators/concat_2d_jagged/sides.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/spec/limits.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

namespace {

constexpr int64_t kGeneratedPrefix = 3;

}  // namespace

void JaggedSidesParams::check(const std::string& path, Mistakes& mistakes) const {
  if (!dense_left || !dense_right) return;
  const std::string place = join_path(path, "dense_right");
  mistakes.check(place, Status(Code::kInvalidConfig,
                               fmt::format("{} is true, but dense_left is, too, and no offsets say how many sequences "
                                           "there are; allowed: false",
                                           place)));
}

RowSequences JaggedSidesParams::sequences(const char* prefix_argument) const {
  RowSequences sequences{{left(), right()}, {}, {left(), right()}};
  for (const Dimension& side : sequences.walked) {
    if (side.is_jagged()) sequences.integers.push_back(offsets_argument(side.offsets, offsets_dtype, side.symbol));
  }
  if (dense_left)
    sequences.integers.push_back(integer_argument("max_len_left", "rows of each sequence on the left", kMaxSeqLen));
  if (dense_right)
    sequences.integers.push_back(integer_argument("max_len_right", "rows of each sequence on the right", kMaxSeqLen));
  if (prefix)
    sequences.integers.push_back(
        integer_argument(prefix_argument, "first rows of the right side, which come before the left one", kMaxSeqLen));
  return sequences;
}

GeneratedRows JaggedSidesParams::generated_rows(int64_t sequence, int64_t drawn, int64_t max_seq_len) const {
  const int64_t dense = std::max<int64_t>(1, max_seq_len / 4), jagged = std::max<int64_t>(0, drawn - dense);
  if (dense_left) return {dense + jagged, {{std::string(kQueryAxis), dense}, {"Lr", jagged}}};
  if (dense_right) return {dense + jagged, {{"Ll", jagged}, {std::string(kQueryAxis), dense}}};
  const int64_t left = drawn * (sequence * 5 % 9) / 8;
  return {drawn, {{"Ll", left}, {"Lr", drawn - left}}};
}

std::optional<HostValue> JaggedSidesParams::make_integer(const Argument& argument, const Lengths& lengths) {
  if (argument.kind == ArgumentKind::kTensor) return {};
  if (argument.name.starts_with("max_len")) return uniform_rows(lengths);
  return HostValue{{}, static_cast<double>(kGeneratedPrefix)};
}

void visit_sides(const JaggedSidesParams& params, const Lengths& lengths, int64_t prefix,
                 const std::function<void(int64_t, bool, int64_t)>& visit) {
  const std::vector<int64_t>& left = lengths.rows_of(row_axis(params.left()));
  const std::vector<int64_t>& right = lengths.rows_of(row_axis(params.right()));
  int64_t row = 0, first_left = 0, first_right = 0;
  for (size_t b = 0; b < lengths.rows.size(); ++b) {
    const int64_t before = std::min(prefix, right[b]);
    for (int64_t i = 0; i < before; ++i) visit(row++, false, first_right + i);
    for (int64_t i = 0; i < left[b]; ++i) visit(row++, true, first_left + i);
    for (int64_t i = before; i < right[b]; ++i) visit(row++, false, first_right + i);
    first_left += left[b];
    first_right += right[b];
  }
}

}  // namespace hstujit
