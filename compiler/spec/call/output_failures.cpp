#include "compiler/spec/call/output_failures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace hstujit {

namespace {

std::string texts(std::span<const SizePart> parts, std::string_view between) {
  std::vector<std::string> sizes;
  for (const SizePart& part : parts) sizes.push_back(to_string(part.size));
  return fmt::format("{}", fmt::join(sizes, between));
}

Status out_of_bounds(std::string argument, int64_t value, std::string allowed) {
  return Status(Code::kInvalidArgument,
                ErrorFields{std::move(argument), fmt::to_string(value), std::move(allowed), ""});
}

}  // namespace

Status number_out_of_bounds(const Argument& argument, int64_t value, int64_t least, int64_t most) {
  return out_of_bounds(argument.name, value,
                       value < least ? fmt::format("at least {}", least) : fmt::format("at most {}", most));
}

Status negative_keyword(const std::string& keyword, int64_t value) {
  return out_of_bounds(keyword, value, "at least 0");
}

Status too_few_rows(std::string_view function, int64_t all, std::span<const SizePart> others, int64_t apart) {
  const std::string allowed = fmt::format("at least {} = {}", texts(others, " and "), apart);
  return Status(Code::kInvalidArgument,
                fmt::format("{}: {} is {}; it must be {}", function, kSequenceAxis, all, allowed),
                {std::string(kSequenceAxis), fmt::to_string(all), allowed, ""});
}

Status offsets_out_of_bounds(const Argument& offsets, int64_t sequences, int64_t value, const SizeSymbol& symbol,
                             int64_t most) {
  std::string name = fmt::format("{}[{}]", offsets.name, sequences);
  if (value < 0) return out_of_bounds(std::move(name), value, "at least 0");
  const std::string of = symbol.parts.empty() ? "" : texts(symbol.parts, " + ") + " = ";
  return out_of_bounds(std::move(name), value, fmt::format("at most {}{}", of, most));
}

Status no_room(std::string_view function, const Argument& output, std::span<const int64_t> sizes) {
  if (std::ranges::any_of(sizes, [](int64_t size) { return size < 0; }))
    return Status(Code::kInvalidArgument, fmt::format("{}: an output would have a size below 0", function));
  return Status(Code::kInvalidArgument,
                fmt::format("{}: {} would have the shape ({}{}), which is larger than any memory", function,
                            output.name, fmt::join(sizes, ", "), sizes.size() == 1 ? "," : ""));
}

}  // namespace hstujit
