// Common base of the gemm family's operators: a product of two matrices, one of whose three extents is the number of
// rows L, and an epilogue that makes an element of the result of one of the product. Or one such product for each
// sequence, of its rows.
//
// An operator (compiler/spec/gemm_operator.h) says which matrices are multiplied and which operands its epilogue has;
// signature, work and bounds follow here, drawn inputs and the reference in gemm_reference.h, and the kernels from the
// IR of the epilogue (compiler/ir/gemm_builder.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/fields_json.h"
#include "compiler/spec/limits.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

enum class GemmOperandKind {
  kVector,  // (n): of a column; where sequences have products of their own, (B, n)
  kMatrix,  // (m, n): of an element
  kScalar,  // a real argument of the launch
};

// Vectors and matrices are of the spec's dtype(), which a kernel reads all of them as.
struct GemmOperand {
  std::string name;
  GemmOperandKind kind = GemmOperandKind::kScalar;
  std::string_view doc;
  double usual = 0;  // a scalar's value in generated calls; what a vector's elements vary around
};

// A factor of the product: its argument, and whether that holds the transposed matrix.
struct GemmFactor {
  std::string name;
  bool transposed = false;
  std::string_view doc;
};

// A second result of a product that sums over rows: the sum over rows of each column of one factor, as it is stored. It
// is the gradient of a bias: `dbias` of addmm_wgrad, which is `dinput` of addmm's backward and duvqk_bias of a layer's.
struct GemmColumnSums {
  bool of_a = false;
  std::string name;   // (m) or (n); where sequences have products of their own, (B, m) or (B, n)
  std::string scale;  // a real argument that sums are multiplied by; empty: none
  std::string_view doc, scale_doc;
};

struct GemmInterface {
  // The result is (m, n); k is what the product sums over. One of m and k is kRows.
  static constexpr int64_t kRows = -1;  // the number of rows L, which a launch says
  int64_t m = kRows, n = 0, k = 0;
  GemmFactor a, b;                    // (m, k) and (k, n)
  std::vector<GemmOperand> operands;  // of the epilogue, in the order of its arguments
  bool takes_column = false;          // the epilogue is told the element's column
  int64_t alike_from = 0;             // column from which on that makes no difference
  std::string_view doc;               // of the result
  // Where each sequence has a product of its own, the type of their offsets. Tensors without rows have a leading axis
  // of sequences then.
  std::optional<DataType> offsets_dtype = {};
  std::optional<GemmColumnSums> column_sums = {};  // where the product sums over rows

  bool per_sequence() const { return offsets_dtype.has_value(); }
  bool rows_of_sequences() const { return per_sequence() && !sums_rows(); }
  bool sums_rows() const { return k == kRows; }
  int64_t summed_columns() const { return column_sums->of_a ? m : n; }
  // Elements of a row of a factor's tensor.
  int64_t columns_of_a() const { return a.transposed ? m : k; }
  int64_t columns_of_b() const { return b.transposed ? k : n; }
};

class GemmSpec : public OpSpec {
 public:
  Family family() const final { return Family::kGemm; }
  virtual const GemmInterface& interface() const = 0;
  virtual DataType dtype() const = 0;             // of matrices and vectors
  virtual MatmulPrecision precision() const = 0;  // of fp32 data, tf32 otherwise
  // L of a launch, about: what kernels are chosen for. 0 where sequences have products of their own: their lengths say.
  virtual int64_t typical_rows() const = 0;
  // Bytes that pointers and strides of tensors are multiples of, where their rows are.
  virtual int64_t alignment() const = 0;
  // The same of a tensor whose rows, one after the other, have so many columns.
  int64_t alignment_of(int64_t columns) const;
  // Bytes that rows of the factors and of the result are multiples of: the least of them.
  int64_t least_alignment() const;

  // Vectors and matrices of the epilogue, a, b, seq_offsets and max_seq_len of sequences, scalars, the result, sums of
  // columns.
  Signature signature(Direction direction) const override;
  Work work(Direction direction, const Lengths& lengths) const override;
  double error_bound(Direction direction) const override;

  // fp32 data whose products are of fp32, too.
  bool is_ieee() const { return dtype() == DataType::kFp32 && precision() == MatmulPrecision::kIeee; }
};

inline constexpr std::string_view kGemmAlignmentDoc =
    "bytes that data pointers and strides of tensors are multiples of, but for those whose rows are not";

// The fields that parameters of a gemm operator begin with.
struct GemmParams {
  static constexpr int64_t kMaxColumns = 65536;

  int64_t k = 0;
  int64_t n = 0;
  DataType dtype = DataType::kBf16;
  MatmulPrecision precision = MatmulPrecision::kTf32;  // fp32 data only, canonicalised to tf32 otherwise
  int64_t typical_rows = 131072;
  int64_t alignment = 16;

  template <typename P>
  static constexpr auto fields_of(std::string_view k_help, std::string_view n_help) {
    return std::make_tuple(
        field("k", &P::k, k_help, 1, kMaxColumns), field("n", &P::n, n_help, 1, kMaxColumns),
        field("dtype", &P::dtype, "data type of matrices").one_of("bf16 fp16 fp32"),
        field("precision", &P::precision, "matrix products of fp32 data").one_of("tf32 ieee"),
        field("typical_rows", &P::typical_rows,
              "rows that a launch has, about: chooses the kernel, which is right for any number", 1, kMaxSeqLen),
        field("alignment", &P::alignment, kGemmAlignmentDoc).one_of("2 4 8 16"));
  }
};

// The fields that those begin with whose sequences have products of their own.
struct SequenceGemmParams {
  int64_t k = 0;
  int64_t n = 0;
  DataType dtype = DataType::kBf16;
  MatmulPrecision precision = MatmulPrecision::kTf32;  // fp32 data only, canonicalised to tf32 otherwise
  DataType offsets_dtype = DataType::kInt64;
  int64_t alignment = 16;

  template <typename P>
  static constexpr auto fields_of(std::string_view k_help, std::string_view n_help) {
    using G = GemmParams;
    return std::make_tuple(field("k", &P::k, k_help, 1, G::kMaxColumns), field("n", &P::n, n_help, 1, G::kMaxColumns),
                           field("dtype", &P::dtype, "data type of matrices").one_of("bf16 fp16 fp32"),
                           field("precision", &P::precision, "matrix products of fp32 data").one_of("tf32 ieee"),
                           field("offsets_dtype", &P::offsets_dtype, "type of offsets").one_of("int32 int64"),
                           field("alignment", &P::alignment, kGemmAlignmentDoc).one_of("2 4 8 16"));
  }
};

}  // namespace hstujit
