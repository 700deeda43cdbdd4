// Sizes of the outputs of a call: from sizes and numbers of its inputs, from keywords, and from the last element of a
// tensor of offsets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/spec/call/resolve.h"

namespace hstujit {

// Reads an input of a call by its position in the signature.
class CallInputs {
 public:
  virtual ~CallInputs() = default;
  virtual int64_t size(int argument, int axis) const = 0;
  virtual int64_t number(int argument) const = 0;
};

// The size of an axis, with where its symbol and its integer are found.
struct SizePart {
  Dimension size;
  int symbol = -1;  // index of OutputSizes::symbols(); -1: none
  int number = -1;  // position in the signature; -1: none
};

// Where the value of a symbol in the shapes of outputs comes from.
struct SizeSymbol {
  enum class Source {
    kAxis,     // (size of an axis of an input - bias) / factor
    kSum,      // the sum of `parts`: rows of two tensors in one
    kRest,     // the first of `parts` less the others: what is left of a tensor's rows
    kKeyword,  // the caller gives it
    kLast,     // the last element of a tensor of offsets, at most the sum of `parts`; without parts (B + 1) * 2^28
  };
  std::string name;
  Source source = Source::kAxis;
  int argument = -1;  // kAxis, kLast: position in the signature
  int axis = 0;
  int64_t factor = 1, bias = 0;
  std::string keyword = {};
  std::vector<SizePart> parts = {};

  // Whether the caller reads the value.
  bool is_given() const { return source == Source::kKeyword || source == Source::kLast; }
};

class OutputSizes {
 public:
  // kInvalidArgument where a keyword is missing without which a size is not known.
  static Result<OutputSizes> make(const CallFunction& function, const Signature& signature, const GivenCall& given);

  // Each behind those that its value follows from.
  const std::vector<SizeSymbol>& symbols() const { return symbols_; }
  // Symbols whose values the caller reads: evaluate() takes a value for each, in this order.
  std::vector<const SizeSymbol*> given() const;

  // The sizes of all outputs, one output behind the other. kInvalidArgument for a number or a keyword out of its
  // bounds, and for an output that no memory has room for.
  Status evaluate(const Signature& signature, const CallInputs& inputs, std::span<const int64_t> given,
                  std::span<int64_t> sizes) const;
  // How many sizes that are.
  size_t count() const { return outputs_.size(); }

  // More symbols than any signature has.
  static constexpr size_t kMostSymbols = 16;

 private:
  class Evaluation;

  explicit OutputSizes(std::string function) : function_(std::move(function)) {}

  void find_told(const Signature& signature);
  Result<SizeSymbol> untold(const CallFunction& function, const Signature& signature, const std::string& symbol) const;
  int find(std::string_view symbol) const;  // -1: not known yet
  bool is_known(const Dimension& size) const { return size.symbol.empty() || find(size.symbol) >= 0; }
  SizePart part(const Signature& signature, const Dimension& size) const;
  std::vector<SizePart> parts(const Signature& signature, const std::vector<Dimension>& sizes) const;

  std::string function_;
  std::vector<SizeSymbol> symbols_;
  std::vector<SizePart> outputs_;  // axes of all outputs
  std::vector<int> numbers_;       // positions of numbers that sizes follow from
};

}  // namespace hstujit
