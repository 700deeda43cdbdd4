#include "compiler/spec/call/output_sizes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "compiler/spec/limits.h"

namespace hstujit {

namespace {

using Dimensions = std::vector<Dimension>;

// First axes of tensors of rows, each once.
Dimensions row_axes(const Signature& signature, ArgumentRole role) {
  Dimensions axes;
  for (const Argument& argument : signature) {
    if (argument.role != role || argument.shape.size() < 2) continue;
    if (std::ranges::find(axes, argument.shape.front()) == axes.end()) axes.push_back(argument.shape.front());
  }
  return axes;
}

std::string texts(std::span<const SizePart> parts, std::string_view between) {
  std::vector<std::string> sizes;
  for (const SizePart& part : parts) sizes.push_back(to_string(part.size));
  return fmt::format("{}", fmt::join(sizes, between));
}

// The rows of the inputs, which are the most that offsets can end with. Nothing where all of the inputs are dense:
// their sequences may have been cut, so that each has its own limit.
Dimensions most_rows(const Signature& signature) {
  Dimensions rows = row_axes(signature, ArgumentRole::kInput);
  std::erase_if(rows, [](const Dimension& size) {
    return size.is_constant() || (size.symbol == "B" && !size.follows_integer()) || size.is_scalar();
  });
  const bool is_cut = std::ranges::none_of(rows, [](const Dimension& size) { return !size.follows_integer(); });
  return is_cut ? Dimensions() : rows;
}

Status out_of_bounds(std::string argument, int64_t value, std::string allowed) {
  return Status(Code::kInvalidArgument,
                ErrorFields{std::move(argument), fmt::to_string(value), std::move(allowed), ""});
}

}  // namespace

int OutputSizes::find(std::string_view symbol) const {
  const auto found = std::ranges::find(symbols_, symbol, &SizeSymbol::name);
  return found == symbols_.end() ? -1 : static_cast<int>(found - symbols_.begin());
}

SizePart OutputSizes::part(const Signature& signature, const Dimension& size) const {
  return {size, size.symbol.empty() ? -1 : find(size.symbol),
          size.follows_integer() ? find_argument(signature, size.integer) : -1};
}

std::vector<SizePart> OutputSizes::parts(const Signature& signature, const Dimensions& sizes) const {
  std::vector<SizePart> parts;
  for (const Dimension& size : sizes) parts.push_back(part(signature, size));
  return parts;
}

void OutputSizes::find_told(const Signature& signature) {
  for (size_t at = 0; at < signature.size(); ++at) {
    const Argument& argument = signature[at];
    for (size_t axis = 0; axis < argument.shape.size(); ++axis) {
      const Dimension& size = argument.shape[axis];
      if (argument.role == ArgumentRole::kInput && !size.symbol.empty() && !size.follows_integer() &&
          find(size.symbol) < 0) {
        SizeSymbol told{size.symbol, SizeSymbol::Source::kAxis, static_cast<int>(at), static_cast<int>(axis)};
        told.factor = size.factor;
        told.bias = size.bias;
        symbols_.push_back(std::move(told));
      }
      if (!size.follows_integer()) continue;
      const int number = find_argument(signature, size.integer);
      if (std::ranges::find(numbers_, number) == numbers_.end()) numbers_.push_back(number);
    }
  }
}

Result<OutputSizes> OutputSizes::make(const CallFunction& function, const Signature& signature,
                                      const GivenCall& given) {
  OutputSizes sizes(function.name());
  sizes.find_told(signature);
  // A keyword counts before what else says how many rows there are.
  for (const auto& [symbol, keyword] : function.interface.rows) {
    if (!given.rows.contains(keyword)) continue;
    std::erase_if(sizes.symbols_, [&](const SizeSymbol& told) { return told.name == symbol; });
    SizeSymbol said{symbol, SizeSymbol::Source::kKeyword};
    said.keyword = keyword;
    sizes.symbols_.push_back(std::move(said));
  }
  for (const Argument& output : signature) {
    if (output.role != ArgumentRole::kOutput) continue;
    for (const Dimension& size : output.shape) {
      if (!sizes.is_known(size)) {
        HSTUJIT_ASSIGN_OR_RETURN(SizeSymbol found, sizes.untold(function, signature, size.symbol));
        sizes.symbols_.push_back(std::move(found));
      }
      sizes.outputs_.push_back(sizes.part(signature, size));
    }
  }
  if (sizes.symbols_.size() > kMostSymbols) return Status(Code::kInternal, "a signature has more symbols than a call");
  return sizes;
}

Result<SizeSymbol> OutputSizes::untold(const CallFunction& function, const Signature& signature,
                                       const std::string& symbol) const {
  using Source = SizeSymbol::Source;
  const Dimensions inputs = row_axes(signature, ArgumentRole::kInput);
  const auto known = [&](const Dimension& size) { return is_known(size); };
  const int offsets = find_argument(signature, Semantic::kOffsets, symbol);
  SizeSymbol found{symbol};
  // Rows of two tensors in one, and back: L is the number of rows of both.
  if (symbol == kSequenceAxis && offsets < 0 && inputs.size() > 1 && std::ranges::all_of(inputs, known)) {
    found.source = Source::kSum;
    found.parts = parts(signature, inputs);
    return found;
  }
  Dimensions apart = row_axes(signature, ArgumentRole::kOutput);
  std::erase_if(apart, [&](const Dimension& size) { return size.symbol == symbol; });
  const bool splits = inputs.size() == 1 && to_string(inputs.front()) == kSequenceAxis;
  if (offsets >= 0 && splits && !apart.empty() && std::ranges::all_of(apart, known)) {
    found.source = Source::kRest;
    apart.insert(apart.begin(), inputs.front());
    found.parts = parts(signature, apart);
    return found;
  }
  if (offsets >= 0) {
    found.source = Source::kLast;
    found.argument = offsets;
    found.parts = parts(signature, most_rows(signature));
    return found;
  }
  const auto rows = std::ranges::find(function.interface.rows, symbol, &std::pair<std::string, std::string>::first);
  const std::string& keyword = rows->second;
  return Status(Code::kInvalidArgument,
                fmt::format("{}: {} is missing; nothing else says how many rows it has", function.name(), keyword),
                {keyword, "", "", ""});
}

std::vector<const SizeSymbol*> OutputSizes::given() const {
  std::vector<const SizeSymbol*> given;
  for (const SizeSymbol& symbol : symbols_)
    if (symbol.is_given()) given.push_back(&symbol);
  return given;
}

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
    if (value < least) return out_of_bounds(argument.name, value, fmt::format("at least {}", least));
    if (value > most) return out_of_bounds(argument.name, value, fmt::format("at most {}", most));
    return {};
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
        if (given < 0) return out_of_bounds(symbol.keyword, given, "at least 0");
        return given;
      case SizeSymbol::Source::kLast:
        return last(symbol, given);
    }
    return Status(Code::kInternal, "a size follows from nothing");
  }

  Result<int64_t> rest(const SizeSymbol& symbol) const {
    const std::span<const SizePart> others = std::span(symbol.parts).subspan(1);
    const int64_t all = size_of(symbol.parts.front()), apart = sum(others);
    if (all >= apart) return all - apart;
    const std::string allowed = fmt::format("at least {} = {}", texts(others, " and "), apart);
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: {} is {}; it must be {}", sizes_.function_, kSequenceAxis, all, allowed),
                  {std::string(kSequenceAxis), fmt::to_string(all), allowed, ""});
  }

  Result<int64_t> last(const SizeSymbol& symbol, int64_t value) const {
    const Argument& offsets = signature_[static_cast<size_t>(symbol.argument)];
    const int64_t sequences = std::max<int64_t>(inputs_.size(symbol.argument, 0) - 1, 0);
    const std::string name = fmt::format("{}[{}]", offsets.name, sequences);
    if (value < 0) return out_of_bounds(name, value, "at least 0");
    const int64_t most = symbol.parts.empty() ? (sequences + 1) * kMaxSeqLen : sum(symbol.parts);
    const std::string of = symbol.parts.empty() ? "" : texts(symbol.parts, " + ") + " = ";
    if (value > most) return out_of_bounds(name, value, fmt::format("at most {}{}", of, most));
    return value;
  }

  // The bytes of an output are a number of 64 bits.
  Status check_room(const Argument& output, std::span<const int64_t> sizes) const {
    constexpr int64_t kMostElements = int64_t{1} << 60;
    int64_t elements = 1;
    bool has_room = true;
    for (const int64_t size : sizes) {
      if (size < 0) {
        return Status(Code::kInvalidArgument, fmt::format("{}: an output would have a size below 0", sizes_.function_));
      }
      has_room = has_room && !__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements);
    }
    if (has_room && elements < kMostElements) return {};
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: {} would have the shape ({}{}), which no memory has room for", sizes_.function_,
                              output.name, fmt::join(sizes, ", "), sizes.size() == 1 ? "," : ""));
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
