// Operands of attention: tensors beside q, k and v that the mask, the score or the factor of a row read.
//
// An instance has a list of them (AttentionSpec::operands). Signatures, drawn inputs, the reference, counts of work,
// launch plans, kernels and the host backend follow that list. A kind says which shape an operand has and how it is
// read; the use says what becomes of what is read. To add an operand of a known kind is to declare it
// (declarations.cpp); to add a kind is to list its axes here and to write its device header,
// templates/attention/operands/<kind>.cuh.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/operators/hstu_attention/query_rows.h"
#include "compiler/spec/signature.h"

namespace hstujit {

struct OperandKind;

enum class OperandUse {
  kMask,    // the mask reads it
  kBias,    // it is added to the dot product, before alpha
  kFactor,  // it multiplies a row of P, behind the score function and in place of the scale
  kScore,   // the expression of the score reads it, by hstu.read
};

struct Operand {
  std::string name;  // of the launch's argument
  const OperandKind* kind = nullptr;
  OperandUse use = OperandUse::kScore;
  DataType dtype = DataType::kFp32;
  int64_t heads = 0;      // size of its axis of heads, a divisor of those of q; 0: it has none
  int64_t entries = 0;    // of a table, or numbers of a row's intervals
  int64_t alignment = 0;  // bytes; 0: an element's
  bool gradient = false;  // backward returns it, as gradient()
  bool by_score = true;   // of kScore: the score reads it, and not the mask alone
  std::string_view doc = {}, gradient_doc = {}, before_doc = {};
  std::string_view field = {};          // the field of a config that asks for it
  std::string_view kernel_suffix = {};  // what names of its kernels have; empty: "_" and its name

  std::string gradient_name() const;
  // Name in kernels of the argument `tensor`, which is the operand, its gradient, or the tensor that the gradient is
  // added to. It differs from `tensor` because a name that users chose may be taken there.
  std::string member(std::string_view tensor) const;
  // The struct of generated source with the slopes of the score that its gradient adds up.
  std::string slopes_struct() const;
  // Whether that is a sum over the pairs of a row or a sequence, or the heads of a pair, or else one over all pairs
  // that read the same (operands/sums.h).
  bool has_slopes() const;
  bool has_sites() const;
  bool varies_by_head(int64_t q_heads) const;          // whether what is read depends on the pair's head
  bool is_own() const { return field == "operands"; }  // whether users declare it (own_operands.h)
  std::string before_name() const;                     // what the gradient is added to
};

// How large the tensors of one call are.
struct OperandSizes {
  int64_t sequences = 0, rows = 0, query_rows = 0, max_seq_len = 0;
  double pairs = 0;  // rows of q times rows of k, added up over sequences
};

// The count that is the size of an operand's axis.
enum class OperandAxis {
  kSequences,
  kHeads,      // Operand::heads; an operand without heads lacks the axis
  kRows,       // of all sequences; of a factor and of the mask, those of q
  kPositions,  // of a sequence, up to max_seq_len
  kEntries,    // Operand::entries
  kOne,
};

// A kind is a list of axes. How a kernel reads it is in templates/attention/operands/<name>.cuh.
struct OperandKind {
  static constexpr size_t kMaxAxes = 4;
  std::string_view name;  // "pair"
  OperandAxis all_axes[kMaxAxes];
  size_t count;

  std::vector<OperandAxis> axes(const Operand& operand) const;
  // Names that kernels have for the strides of all axes but the last, which is 1: "row_stride".
  std::vector<std::string_view> strides(const Operand& operand) const;
  // The axes in numbers.
  std::vector<int64_t> sizes(const Operand& operand, const OperandSizes& sizes) const;
};

const OperandKind& pair_kind();       // (B, heads, max_seq_len, max_seq_len): an element for each pair
const OperandKind& row_kind();        // (L) or (L, heads): an element for each row; a factor's rows are those of q
const OperandKind& sequence_kind();   // (B): an element for each sequence; of the mask, a number of its rows
const OperandKind& intervals_kind();  // (heads, entries, L): ends of the intervals of columns that a row of q sees
const OperandKind& scalar_kind();     // (1): one number
const OperandKind& head_kind();       // (heads): an element for each head
const OperandKind& table_kind();      // (entries) or (entries, heads): read at an index, or at the nearest that it has

// The one that is used so; null where there is none.
const Operand* find_operand(const std::vector<Operand>& operands, OperandUse use);

// The first that scores read at rows of k, which a kernel must be able to find; null where there is none.
const Operand* find_read_rows(const std::vector<Operand>& operands);
// The first that scores read of one sequence, which a kernel must know.
const Operand* find_read_of_sequence(const std::vector<Operand>& operands);

// The operand as an input, its gradient, and what the gradient is added to.
Argument operand_argument(const Operand& operand, QueryRows rows);
Argument gradient_argument(const Operand& operand, QueryRows rows, bool adds);
Argument before_argument(const Operand& operand, QueryRows rows);

// How many elements the operand has, and how many of them a launch reads at least.
double elements(const Operand& operand, const OperandSizes& sizes);
double elements_read(const Operand& operand, const OperandSizes& sizes);

}  // namespace hstujit
