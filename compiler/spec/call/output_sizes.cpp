#include "compiler/spec/call/output_sizes.h"

#include <algorithm>
#include <array>
#include <limits>

#include "compiler/spec/call/output_failures.h"
#include "compiler/spec/limits.h"

namespace hstujit {

// The values of symbols in one call. A size that 64 bits do not count is the largest number.
class OutputSizes::Evaluation {
 public:
  Evaluation(const OutputSizes& sizes, const Signature& signature, const CallInputs& inputs)
      : sizes_(sizes), signature_(signature), inputs_(inputs) {}

  Status run(std::span<const int64_t> given, std::span<int64_t> to) {
    for (const int number : sizes_.numbers_) HSTUJIT_RETURN_IF_ERROR(check_number(number));
    size_t next = 0;
    for (size_t at = 0; at < sizes_.symbols_.size(); ++at) {
      const SizeSymbol& symbol = sizes_.symbols_[at];
      HSTUJIT_ASSIGN_OR_RETURN(values_[at], value_of(symbol, symbol.is_given() ? given[next++] : 0));
    }
    for (size_t at = 0; at < to.size(); ++at) to[at] = size_of(sizes_.outputs_[at]);
    for (const Argument& output : signature_) {
      if (output.role != ArgumentRole::kOutput) continue;
      HSTUJIT_RETURN_IF_ERROR(check_room(output, to.first(output.shape.size())));
      to = to.subspan(output.shape.size());
    }
    return {};
  }

 private:
  static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

  Status check_number(int number) const {
    const Argument& argument = signature_[static_cast<size_t>(number)];
    const int64_t value = inputs_.number(number), least = std::max<int64_t>(argument.min, 0);
    const int64_t most = argument.max == kMost ? kMaxSeqLen : argument.max;
    return value < least || value > most ? number_out_of_bounds(argument, value, least, most) : Status();
  }

  int64_t size_of(const SizePart& part) const {
    const int64_t total = part.symbol < 0 ? part.size.bias : part.size.size(values_[static_cast<size_t>(part.symbol)]);
    int64_t product = 0;
    if (part.number < 0) return total;
    return __builtin_mul_overflow(total, inputs_.number(part.number), &product) ? kMost : product;
  }

  int64_t sum(std::span<const SizePart> parts) const {
    int64_t total = 0;
    for (const SizePart& part : parts)
      if (__builtin_add_overflow(total, size_of(part), &total)) return kMost;
    return total;
  }

  Result<int64_t> value_of(const SizeSymbol& symbol, int64_t given) const {
    switch (symbol.source) {
      case SizeSymbol::Source::kAxis: {
        const int64_t size = inputs_.size(symbol.argument, symbol.axis) - symbol.bias;
        return size < 0 ? -1 : size / symbol.factor;
      }
      case SizeSymbol::Source::kSum:
        return sum(symbol.parts);
      case SizeSymbol::Source::kRest:
        return rest(symbol);
      case SizeSymbol::Source::kKeyword:
        if (given < 0) return negative_keyword(symbol.keyword, given);
        return given;
      case SizeSymbol::Source::kLast:
        return last(symbol, given);
    }
    return Status(Code::kInternal, "a size follows from nothing");
  }

  Result<int64_t> rest(const SizeSymbol& symbol) const {
    const std::span<const SizePart> others = std::span(symbol.parts).subspan(1);
    const int64_t all = size_of(symbol.parts.front()), apart = sum(others);
    if (all < apart) return too_few_rows(sizes_.function_, all, others, apart);
    return all - apart;
  }

  Result<int64_t> last(const SizeSymbol& symbol, int64_t value) const {
    const Argument& offsets = signature_[static_cast<size_t>(symbol.argument)];
    const int64_t sequences = std::max<int64_t>(inputs_.size(symbol.argument, 0) - 1, 0);
    const int64_t most = symbol.parts.empty() ? (sequences + 1) * kMaxSeqLen : sum(symbol.parts);
    if (value < 0 || value > most) return offsets_out_of_bounds(offsets, sequences, value, symbol, most);
    return value;
  }

  // The bytes of an output are a number of 64 bits.
  Status check_room(const Argument& output, std::span<const int64_t> sizes) const {
    constexpr int64_t kMostElements = int64_t{1} << 60;
    int64_t elements = 1;
    bool has_room = true;
    for (const int64_t size : sizes)
      has_room = has_room && size >= 0 && !__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements);
    if (has_room && elements < kMostElements) return {};
    return no_room(sizes_.function_, output, sizes);
  }

  const OutputSizes& sizes_;
  const Signature& signature_;
  const CallInputs& inputs_;
  std::array<int64_t, kMostSymbols> values_{};
};

Status OutputSizes::evaluate(const Signature& signature, const CallInputs& inputs, std::span<const int64_t> given,
                             std::span<int64_t> sizes) const {
  return Evaluation(*this, signature, inputs).run(given, sizes);
}

}  // namespace hstujit
