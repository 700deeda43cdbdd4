// Gradients of operands that are sums over all pairs: tables, elements of heads and scalars that the score reads.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/spec/operators/hstu_attention/operands/operand.h"

namespace hstujit {

// The elements of all of them, one after the other: of tables first, head after head and of each its entries.
struct OperandSums {
  struct Part {
    const Operand* operand;
    int64_t first;  // element
    int64_t entries, heads;
  };
  std::vector<Part> parts;
  int64_t tables = 0, others = 0;  // elements
  int64_t most_entries = 0;        // of a table
  bool sums_heads = false;         // some table is the same for all heads: terms may be added up over these first

  // `shared`: AttentionSpec::shares_sites(); then all are added up over the heads first.
  explicit OperandSums(const std::vector<Operand>& operands, bool shared = false);
  int64_t count() const { return tables + others; }

  // Bytes of shared memory of a CTA that adds them up (templates/attention/operands/gradients/tables.cuh).
  int64_t shared_bytes() const;
};

// Bound of shared_bytes() on every GPU: a table of 22 thousand entries, or tables of 44 thousand elements in all. The
// kernels of a GPU with less refuse more than that has, with a sentence.
inline constexpr int64_t kMostSumBytes = 227 * 1024;

}  // namespace hstujit
