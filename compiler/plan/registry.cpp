// Look-ups in skeletons(), the table that CMake generates from templates/<family>/<name>/kernel.{cpp,cuh}.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/plan/skeleton.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

// Reports and kernels' names have what follows the family alone. Empty where several families have that.
std::string_view meant_skeleton(std::string_view written, const std::vector<std::string_view>& names) {
  if (written.find('/') != std::string_view::npos) return closest(written, names);
  const auto last_of = [](std::string_view name) { return name.substr(name.rfind('/') + 1); };
  std::vector<std::string_view> lasts;
  for (const std::string_view name : names) lasts.push_back(last_of(name));
  const std::string_view near = closest(written, lasts);
  if (near.empty()) return closest(written, names);
  if (std::ranges::count(lasts, near) > 1) return {};
  return names[static_cast<size_t>(std::ranges::find(lasts, near) - lasts.begin())];
}

}  // namespace

Result<const Skeleton*> find_skeleton(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Skeleton* skeleton : skeletons()) {
    if (skeleton->name() == name) return skeleton;
    names.push_back(skeleton->name());
  }
  return Status(Code::kNotFound, fmt::format("skeleton {} is not part of this build{}; allowed: {}", quote(name),
                                             did_you_mean(meant_skeleton(name, names)), fmt::join(names, ", ")));
}

}  // namespace hstujit
