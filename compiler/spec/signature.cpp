#include "compiler/spec/signature.h"

#include <fmt/format.h>

#include <cmath>

namespace hstujit {

std::string to_string(const Dimension& dimension) {
  if (dimension.is_constant()) return fmt::to_string(dimension.bias);
  if (dimension.is_scalar()) return dimension.integer;
  const std::string factor = dimension.factor == 1 ? std::string() : fmt::format("{}*", dimension.factor);
  const std::string bias = dimension.bias == 0 ? std::string() : fmt::format("{:+}", dimension.bias);
  const std::string times = dimension.is_uniform() ? fmt::format("*{}", dimension.integer) : std::string();
  return fmt::format("{}{}{}{}", factor, dimension.symbol, times, bias);
}

std::string to_string(const RealRange& range) {
  const bool least = std::isfinite(range.min), most = std::isfinite(range.max);
  if (least && most) return fmt::format("from {} to {}", range.min, range.max);
  if (least) return fmt::format("at least {}", range.min);
  return most ? fmt::format("at most {}", range.max) : "any number";
}

std::string shape_text(const Argument& argument) {
  std::string text;
  for (const Dimension& dimension : argument.shape) {
    if (!text.empty()) text += ", ";
    text += to_string(dimension);
  }
  return "(" + text + ")";
}

std::string_view to_string(Semantic semantic) {
  switch (semantic) {
    case Semantic::kData:
      return "data";
    case Semantic::kOffsets:
      return "offsets";
    case Semantic::kCounts:
      return "counts";
    case Semantic::kMaxRows:
      return "max_rows";
    case Semantic::kSeed:
      return "seed";
  }
  return "";
}

int find_argument(const Signature& signature, Semantic semantic, std::string_view axis) {
  for (size_t i = 0; i < signature.size(); ++i) {
    if (signature[i].semantic == semantic && (axis.empty() || signature[i].axis == axis)) return static_cast<int>(i);
  }
  return -1;
}

int find_argument(const Signature& signature, std::string_view name) {
  for (size_t index = 0; index < signature.size(); ++index) {
    if (signature[index].name == name) return static_cast<int>(index);
  }
  return -1;
}

}  // namespace hstujit
