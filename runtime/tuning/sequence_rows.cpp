#include "runtime/tuning/sequence_rows.h"

namespace hstujit {

namespace {

constexpr std::string_view kAllRows = "seq_offsets", kQueryRows = "seq_offsets_q";

}  // namespace

bool has_rows(const Argument& argument) {
  return argument.kind == ArgumentKind::kTensor && !argument.shape.empty() &&
         (argument.shape[0].is_jagged() || argument.shape[0].is_uniform());
}

bool has_jagged_rows(const Argument& argument) { return has_rows(argument) && argument.shape[0].is_jagged(); }

const std::vector<int64_t>& sequence_rows(const Argument& argument, const Lengths& lengths) {
  return argument.shape[0].offsets == kAllRows ? lengths.rows : lengths.delta_rows;
}

const std::vector<int64_t>* rows_between(const Argument& offsets, const Lengths& lengths) {
  if (offsets.name == kAllRows) return &lengths.rows;
  return offsets.name == kQueryRows ? &lengths.delta_rows : nullptr;
}

}  // namespace hstujit
