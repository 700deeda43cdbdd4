#include "compiler/spec/call/resolve_failures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/spec/aliases.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

std::string text_of_sizes(const std::vector<int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

}  // namespace

std::string either_of(const std::vector<std::string>& names) {
  if (names.size() < 2) return names.empty() ? "" : names.front();
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

std::string call_shape_text(const std::vector<std::string>& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

std::string call_shapes_text(const CallInterface& interface, const CallArgument& entry) {
  std::vector<std::vector<std::string>> shapes;
  for (const auto& [name, forms] : interface.forms) {
    if (name != entry.argument.name) continue;
    for (const CallForm& form : forms) shapes.push_back(form.shape);
  }
  if (shapes.empty()) shapes.push_back(entry.shape);
  std::ranges::stable_sort(shapes, {}, &std::vector<std::string>::size);
  std::vector<std::string> texts;
  for (const auto& shape : shapes) texts.push_back(call_shape_text(shape));
  return either_of(texts);
}

Status no_argument(const CallFunction& function, const std::string& name) {
  std::vector<std::string> allowed = function.interface.keywords;
  for (const auto& [symbol, keyword] : function.interface.rows) allowed.push_back(keyword);
  for (const CallArgument& entry : function.interface.arguments)
    if (entry.argument.role == ArgumentRole::kInput) allowed.push_back(entry.argument.name);
  const std::vector<std::string_view> views(allowed.begin(), allowed.end());
  return Status(Code::kInvalidArgument,
                fmt::format("{} has no argument {}{}; allowed: {}", function.name(), quote(name),
                            did_you_mean(meant_names(name, views)), fmt::join(allowed, ", ")),
                {name, "", fmt::format("{}", fmt::join(allowed, ", ")), ""});
}

Status wrong_rank(std::string_view name, const GivenTensor& tensor, const std::string& allowed) {
  const std::string shape = text_of_sizes(tensor.shape);
  return Status(Code::kInvalidArgument,
                fmt::format("{} has rank {}, shape {}; it must be {}", name, tensor.shape.size(), shape, allowed),
                {std::string(name), shape, allowed, ""});
}

Status wrong_shape(std::string_view name, const GivenTensor& tensor, const std::string& allowed) {
  const std::string shape = text_of_sizes(tensor.shape);
  return Status(Code::kInvalidArgument, fmt::format("{} has the shape {}; it must be {}", name, shape, allowed),
                {std::string(name), shape, allowed, ""});
}

Status wrong_dtype(std::string_view name, const GivenTensor& tensor, const std::string& allowed) {
  return Status(Code::kInvalidArgument, fmt::format("{} has dtype {}; it must be {}", name, tensor.dtype, allowed),
                {std::string(name), tensor.dtype, allowed, ""});
}

}  // namespace hstujit
