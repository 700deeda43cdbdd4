// Operands that users declare for their score and mask: HstuAttentionParams::operands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/operators/hstu_attention/operands/operand.h"
#include "compiler/support/status.h"

namespace hstujit {

inline constexpr size_t kMaxOwnOperands = 16;
inline constexpr int64_t kMaxTableEntries = int64_t{1} << 20;  // times heads, of all tables together
inline constexpr size_t kMaxSums = 8;  // tables, heads and scalars with a gradient, which one kernel adds up
// The same of the tables with a gradient, whose sums a kernel keeps in shared memory.
inline constexpr int64_t kMaxSummedEntries = 16384;

// The operands of a text such as "ts: row(int64), by_age: table(129, grad)", for an instance with so many heads
// (docs/expressions.md, "Operands"), in its order; or what is wrong and at which column of the text.
Result<std::vector<Operand>> parse_own_operands(std::string_view text, int64_t heads);

// The same of a text that it takes.
std::vector<Operand> own_operands(std::string_view text, int64_t heads);

// Brings texts that declare the same in the same order to one: of a text that parse_own_operands takes.
std::string canonical_own_operands(std::string_view text, int64_t heads);

}  // namespace hstujit
