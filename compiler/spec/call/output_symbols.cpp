// Where the sizes of a call's outputs come from, found once for a call.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/spec/call/output_sizes.h"

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

// The rows of the inputs, which are the most that offsets can end with. Nothing where all of the inputs are dense:
// their sequences may have been cut, so that each has its own limit. Rows with offsets of their own limit no others.
Dimensions most_rows(const Signature& signature) {
  Dimensions rows = row_axes(signature, ArgumentRole::kInput);
  std::erase_if(rows, [](const Dimension& size) {
    return size.is_constant() || (size.symbol == "B" && !size.follows_integer()) || size.is_scalar() ||
           size.is_jagged();
  });
  const bool is_cut = std::ranges::none_of(rows, [](const Dimension& size) { return !size.follows_integer(); });
  return is_cut ? Dimensions() : rows;
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

}  // namespace hstujit
