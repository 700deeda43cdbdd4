#include "autotune_cache/store/cache_listing.h"

#include "autotune_cache/store/bundle_layer.h"
#include "autotune_cache/store/directory_layer.h"
#include "compiler/support/files.h"

namespace hstujit {
namespace {

// Items that `list` gives of a directory or a bundle; none of a layer that lists none.
template <typename List>
auto listed(const CacheLayer& layer, const List& list) -> decltype(list(std::declval<const DirectoryLayer&>())) {
  if (const auto* const directory = dynamic_cast<const DirectoryLayer*>(&layer)) return list(*directory);
  if (const auto* const bundle = dynamic_cast<const BundleLayer*>(&layer)) return list(*bundle);
  return {};
}

}  // namespace

void keep_failure(const Status& status, Status* failure) {
  if (failure != nullptr && failure->ok() && is_system_failure(status)) *failure = status;
}

std::vector<StoredArtifact> artifacts_of(const CacheLayer& layer, Status* failure) {
  return listed(layer, [&](const auto& known) { return known.artifacts(failure); });
}

std::vector<StoredRecord> records_of(const CacheLayer& layer, Status* failure) {
  return listed(layer, [&](const auto& known) { return known.records(failure); });
}

std::vector<StoredChoice> choices_of(const CacheLayer& layer, Status* failure) {
  return listed(layer, [&](const auto& known) { return known.choices(failure); });
}

std::vector<VerifiedFile> verify_layer(const CacheLayer& layer) {
  return listed(layer, [](const auto& known) { return known.verify(); });
}

std::vector<VerifiedFile> folders_passed_over(const CacheLayer& layer) {
  return listed(layer, [](const auto& known) { return known.folders_passed_over(); });
}

}  // namespace hstujit
