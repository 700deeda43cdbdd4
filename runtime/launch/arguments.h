// Checks the values of a launch against an operator's signature. The good path allocates nothing and formats nothing.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "compiler/spec/signature.h"
#include "compiler/support/status.h"
#include "hstujit/hstujit.h"
#include "runtime/launch/tensor_memory.h"

namespace hstujit {

// Where the tensors of a launch must be.
struct Placement {
  bool on_device = true;  // CUDA memory, else host memory
  int ordinal = 0;        // of the CUDA device
};

// Limits of a check without allocations.
inline constexpr int kMaxRank = 8;
inline constexpr int kMaxSymbols = 16;

// In place of what is not known while a call is traced.
inline constexpr int64_t kUnknownSize = -1;
inline constexpr int64_t kUnknownInteger = std::numeric_limits<int64_t>::min();

// Mistake of a launch, as numbers; ArgumentChecker::explain makes a sentence of it.
struct ArgumentFailure {
  enum class Kind {
    kNone,
    kCount,  // value: how many were given
    kNullTensor,
    kNullShape,
    kDeviceType,     // value: the DLPack device type
    kDeviceOrdinal,  // value: the ordinal
    kDtype,
    kRank,          // value: the rank
    kNegativeSize,  // value: the size
    kSize,          // value: the size, which the dimension cannot have
    kSymbol,        // value, allowed: sizes; other: the argument that bound the symbol
    kIntegerAxis,   // value: the size; allowed: the number of sequences; other: the argument that bound their symbol
    kNullData,
    kInnerStride,     // value: the stride
    kNegativeStride,  // value: the stride
    kPointerAlignment,
    kStrideAlignment,  // value: the stride
    kTooLarge,         // it spans more bytes than an int64_t counts
    kNoAddress,        // its byte_offset, or what it spans, leads out of what an int64_t counts
    kOverlap,          // value: the stride; allowed: the least that keeps elements of an output apart
    kSharedMemory,     // other: the tensor that shares elements with this output
    kSequences,        // value: the number of sequences
    kIntegerRange,     // value: the integer
    kNegativeInteger,  // value: the integer
    kIntegerTooLarge,  // value: the integer
    kNotFinite,
    kRealRange,
  };
  Kind kind = Kind::kNone;
  int argument = 0;
  int dimension = 0;
  int64_t value = 0;
  int64_t allowed = 0;
  int other = 0;

  bool none() const { return kind == Kind::kNone; }
};

// Fails for a length that no kernel is prepared for; `most` is the argument's.
Status check_max_seq_len(int64_t max_seq_len, int64_t most);

class ArgumentChecker {
 public:
  // kUnsupported when a tensor has more than kMaxRank dimensions, or all together more than kMaxSymbols symbols, and
  // for an axis that follows no integer argument of the signature, or that nothing counts the sequences of.
  static Result<ArgumentChecker> create(const Signature& signature);

  // Integer argument `index` must be >= 0, or fit 32 bits: what a kernel's parameters ask for.
  void require_not_negative(int index) { arguments_[index].not_negative = true; }
  void require_int32(int index) { arguments_[index].int32 = true; }

  // `values` holds `count` values. `nothing_to_write` becomes true when every output is empty: such a launch is done.
  ArgumentFailure check(const hstujit_value* values, size_t count, const Placement& placement,
                        bool* nothing_to_write) const;

  // Sizes and integers of the inputs alone, as far as they are known: kUnknownSize and kUnknownInteger are not.
  ArgumentFailure check_inputs(const hstujit_value* values) const;

  // kInvalidArgument with one sentence: the argument, its value and what is allowed.
  Status explain(const ArgumentFailure& failure, const hstujit_value* values, const Placement& placement) const;

  const Signature& signature() const { return signature_; }

 private:
  struct Checked {
    bool tensor = false;
    bool output = false;
    bool integer = false;
    bool not_negative = false;
    bool int32 = false;
    uint8_t code = 0;
    uint8_t bits = 0;
    int rank = 0;
    int64_t alignment = 1;
    std::array<int, kMaxRank> symbols{};  // by dimension: the number of its symbol, -1 of a constant
    int in_place = -1;                    // an output: the input that it may be
    uint32_t follows_integer = 0;         // bit by dimension: its size is no symbol's value
  };
  // A dimension whose size follows from an integer argument, which may stand behind it.
  struct IntegerAxis {
    int argument = 0;
    int dimension = 0;
    int symbol = 0;  // -1: none, the size is the integer itself
    int integer = 0;
  };
  struct Symbols {
    std::array<int64_t, kMaxSymbols> value;
    std::array<int, kMaxSymbols> bound_by;
    uint32_t bound = 0;
  };

  explicit ArgumentChecker(const Signature& signature) : signature_(signature) {}

  static bool is_bound(const Symbols& symbols, int symbol) { return symbol >= 0 && (symbols.bound >> symbol & 1) != 0; }

  Status read_signature();
  Status read_shape(const Argument& argument, Checked& checked);
  Status read_integer_axes();
  int find_symbol(const std::string& symbol) const;
  // Checks where the elements of a tensor are, if it has any.
  static ArgumentFailure check_memory(int index, const Checked& expected, const DLTensor& tensor);
  static ArgumentFailure check_layout(int index, const Checked& expected, const DLTensor& tensor);
  ArgumentFailure check_integer_axes(const hstujit_value* values, const Symbols& symbols, bool of_inputs) const;
  ArgumentFailure check_outputs(const hstujit_value* values) const;
  ArgumentFailure check_tensor(int index, const Checked& expected, const DLTensor* tensor, const Placement& placement,
                               Symbols& symbols, bool* empty) const;
  // Binds symbols that no tensor before this one has. A size is unknown in check_inputs() alone.
  ArgumentFailure check_sizes(int index, const Checked& expected, const int64_t* sizes, bool may_be_unknown,
                              Symbols& symbols) const;
  ArgumentFailure check_integer(int index, const Checked& expected, int64_t value) const;

  Signature signature_;
  std::vector<Checked> arguments_;
  std::vector<IntegerAxis> integer_axes_;
  std::vector<std::string> symbols_;
  int sequences_ = -1;  // the symbol that counts them; -1: none does
};

}  // namespace hstujit
