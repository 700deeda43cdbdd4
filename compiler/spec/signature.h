// Arguments and results of an operator: the list of arguments that a launch fills, in order.
//
// The runtime validates tensors, packs kernel parameters, draws inputs, checks their data (HSTUJIT_CHECK) and describes
// operators to bindings from this list alone. Names are for people: what an argument means is its semantic.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/spec/types.h"

namespace hstujit {

enum class ArgumentKind { kTensor, kFloat, kInt };  // kFloat is a double, kInt an int64_t, at the C API
enum class ArgumentRole { kInput, kOutput };

// Meanings of integers. kOffsets, kCounts and kMaxRows are about the rows that sequences have on the axis
// Argument::axis.
enum class Semantic {
  kData,     // what the operator computes with
  kOffsets,  // a tensor (B+1): where the rows of each sequence begin, and where those of the last one end
  kCounts,   // a tensor (B): some of the rows of each sequence, from none to all
  kMaxRows,  // a scalar: no sequence has more rows
  kSeed,     // a scalar of any value, or a tensor (1) or (L) of them, which random numbers follow from
};
std::string_view to_string(Semantic semantic);  // "data" "offsets" "counts" "max_rows" "seed"

// The size of one dimension: factor * symbol + bias. A symbol ("L", "B") is a number that a launch's tensors determine,
// the same wherever it appears in a signature. A constant has no symbol: it is a bias, and 0 the value of what it
// lacks.
//
// Two kinds of axis hold the rows of all sequences, one sequence after the other: a jagged one, whose size is a symbol
// of its own and whose sequences begin where an argument of offsets says, and one with the same number of rows for each
// sequence, an integer argument of the launch, whose size is B times that. An axis may also be as long as an integer
// argument says: a scalar one, without a symbol.
struct Dimension {
  std::string symbol;
  int64_t factor = 1;  // at least 1
  int64_t bias = 0;
  std::string offsets = {};  // of a jagged axis: the tensor (B+1) that says where each sequence begins
  std::string integer = {};  // of a uniform or a scalar one: the integer argument, which the size is a multiple of
  int64_t max = std::numeric_limits<int64_t>::max();  // the largest value of the symbol

  bool operator==(const Dimension&) const = default;

  static Dimension constant(int64_t size) { return {{}, 1, size, {}, {}}; }
  static Dimension of(std::string symbol, int64_t bias = 0) { return {std::move(symbol), 1, bias, {}, {}}; }
  Dimension at_most(int64_t value) const {
    Dimension bounded = *this;
    bounded.max = value;
    return bounded;
  }
  static Dimension jagged(std::string symbol, std::string offsets) {
    return {std::move(symbol), 1, 0, std::move(offsets), {}};
  }
  static Dimension uniform(std::string integer) { return {"B", 1, 0, {}, std::move(integer)}; }
  static Dimension scalar(std::string integer) { return {{}, 1, 1, {}, std::move(integer)}; }

  bool is_constant() const { return symbol.empty() && !follows_integer(); }
  bool is_jagged() const { return !offsets.empty(); }
  bool is_uniform() const { return follows_integer() && !symbol.empty(); }
  bool is_scalar() const { return follows_integer() && symbol.empty(); }
  // Uniform or scalar: the size is no symbol's value, and integer_size() says what it must be.
  bool follows_integer() const { return !integer.empty(); }
  // A size that no integer counts is the largest one: more than any tensor has.
  int64_t size(int64_t symbol_value) const {
    int64_t size = 0;
    const bool overflow =
        __builtin_mul_overflow(factor, symbol_value, &size) || __builtin_add_overflow(size, bias, &size);
    return overflow ? std::numeric_limits<int64_t>::max() : size;
  }
  // The size of an axis that follows an integer argument where that has the value; none when it is negative, or when no
  // integer counts the size. A scalar axis has no symbol, whose value is then any.
  std::optional<int64_t> integer_size(int64_t symbol_value, int64_t integer_value) const {
    int64_t total = 0;
    const int64_t times = is_scalar() ? bias : size(symbol_value);
    if (integer_value < 0 || __builtin_mul_overflow(times, integer_value, &total)) return {};
    return total;
  }
  // The symbol's value where the size is `size`; none when no value from 0 to `max` gives that size.
  std::optional<int64_t> symbol_value(int64_t size) const {
    if (size < bias || (size - bias) % factor != 0 || (is_constant() && size != bias)) return std::nullopt;
    const int64_t value = (size - bias) / factor;
    return value > max ? std::nullopt : std::optional(value);
  }
};

// For messages and JSON: "64", "L", "B+1", "4*B", "2*M-1", "B*max_delta_len", "max_seq_len".
std::string to_string(const Dimension& dimension);

// The values that a launch may give a real argument, both ends among them.
struct RealRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();

  bool contains(double value) const { return value >= min && value <= max; }
  bool operator==(const RealRange&) const = default;
};
inline constexpr RealRange kNotNegative{0, std::numeric_limits<double>::infinity()};

// For messages, what a value must be: "at least 0", "at most 1", "from 0 to 1".
std::string to_string(const RealRange& range);

struct Argument {
  std::string name;  // as docs/ops-*.md have it
  ArgumentKind kind = ArgumentKind::kTensor;
  ArgumentRole role = ArgumentRole::kInput;
  DataType dtype = DataType::kBf16;  // tensors
  std::vector<Dimension> shape;      // tensors; innermost stride must be 1, others are free
  int alignment = 1;                 // tensors: bytes that the data pointer and all outer strides must be multiples of
  std::string_view doc;
  int64_t max = std::numeric_limits<int64_t>::max();  // integers: the largest value that a launch may give
  Semantic semantic = Semantic::kData;
  std::string axis = {};     // the symbol of that axis, "L"; empty where the semantic is about none
  bool accumulated = false;  // outputs: a sum over all rows of the batch, which is 0 where there are none
  RealRange range = {};      // of real numbers, which are finite ones of fp32 besides
  int64_t min = std::numeric_limits<int64_t>::min();  // integers: the least value that a launch may give, 0 or none
  // Outputs: the input whose memory this one may have, address and strides, since the kernel reads each element of it
  // in the thread that writes the output's, and before. Empty: an output shares no element with another tensor.
  std::string in_place = {};
  // Tensors: offsets and integers, each of an axis with some of the rows that a sequence has on the first axis.
  // Together they are all of those. Empty where nothing is known of it.
  std::vector<std::string> joined = {};
};

// For messages: "(L, 4, 64)".
std::string shape_text(const Argument& argument);

using Signature = std::vector<Argument>;

// Position of an argument in a signature; -1 when there is none of that name.
int find_argument(const Signature& signature, std::string_view name);

// Position of the first argument that means this, of the axis where one is named; -1 when there is none.
int find_argument(const Signature& signature, Semantic semantic, std::string_view axis = {});

}  // namespace hstujit
