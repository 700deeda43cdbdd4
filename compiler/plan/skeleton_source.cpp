#include "compiler/plan/skeleton_source.h"

#include <algorithm>

namespace hstujit {

namespace {

// Null where the table has none.
const SkeletonSource* find_source(std::string_view name) {
  const std::vector<const SkeletonSource*>& sources = skeleton_sources();
  const auto found = std::ranges::find(sources, name, &SkeletonSource::name);
  return found == sources.end() ? nullptr : *found;
}

}  // namespace

Constants Skeleton::constants(const OpSpec& spec, const KernelConfig& config) const {
  const SkeletonSource* const source = find_source(name());
  return source == nullptr ? Constants() : source->constants(spec, config);
}

std::string Skeleton::instruction_wrappers(const OpSpec& spec, const KernelConfig& config) const {
  const SkeletonSource* const source = find_source(name());
  return source == nullptr ? std::string() : source->instruction_wrappers(spec, config);
}

}  // namespace hstujit
