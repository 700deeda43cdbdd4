#include "compiler/spec/operators/hstu_attention/operands/sums.h"

#include <algorithm>

namespace hstujit {

OperandSums::OperandSums(const std::vector<Operand>& operands, bool shared) : sums_heads(shared) {
  for (const Operand& operand : operands) {
    if (!operand.has_sites() || operand.kind != &table_kind()) continue;
    parts.push_back({&operand, tables, operand.entries, std::max<int64_t>(operand.heads, 1)});
    tables += parts.back().entries * parts.back().heads;
    most_entries = std::max(most_entries, operand.entries);
    sums_heads = sums_heads || operand.heads == 0;
  }
  for (const Operand& operand : operands) {
    if (!operand.has_sites() || operand.kind == &table_kind()) continue;
    parts.push_back({&operand, count(), 1, std::max<int64_t>(operand.heads, 1)});
    others += parts.back().heads;
  }
}

int64_t OperandSums::shared_bytes() const {
  constexpr int64_t kTileBytes = 32 * 1024, kHeadSumBytes = 16 * 1024, kReductionBytes = 128, kWarps = 4,
                    kWordBytes = 4;
  return kTileBytes + (sums_heads ? kHeadSumBytes : 0) + kReductionBytes +
         kWordBytes * (tables + kWarps * others + most_entries);
}

}  // namespace hstujit
