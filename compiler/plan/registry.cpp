// Look-ups in skeletons(), the table that CMake generates from templates/<op>/<name>.{cpp,cuh}.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/plan/skeleton.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"

namespace hstujit {

Result<const Skeleton*> find_skeleton(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Skeleton* skeleton : skeletons()) {
    if (skeleton->name() == name) return skeleton;
    names.push_back(skeleton->name());
  }
  return Status(Code::kNotFound, fmt::format("skeleton {} is not part of this build{}; allowed: {}", quote(name),
                                             did_you_mean(closest(name, names)), fmt::join(names, ", ")));
}

}  // namespace hstujit
