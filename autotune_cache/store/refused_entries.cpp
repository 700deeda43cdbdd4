#include "autotune_cache/store/refused_entries.h"

#include <filesystem>

#include "compiler/support/files.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

// The answer of a look-up about an entry in `folder`, and where it says that there is none, what is wrong with the
// folder.
Status whole_answer(const CacheLayer& layer, const Status& found, const fs::path& folder) {
  if (found.code() != Code::kNotFound || layer.tree() == nullptr || !layer.tree()->problem().ok()) return found;
  const Status opened = layer.tree()->open(folder).status();
  return opened.ok() ? found : opened;
}

template <typename Find>
std::vector<VerifiedFile> refused(const CacheLayers& layers, const fs::path& folder, const Find& find) {
  std::vector<VerifiedFile> entries;
  for (const CacheLayerPtr& layer : layers) {
    const Status status = whole_answer(*layer, find(*layer), folder);
    if (!status.ok() && status.code() != Code::kNotFound)
      entries.push_back({layer->path(), status.message(), is_system_failure(status)});
  }
  return entries;
}

}  // namespace

std::vector<VerifiedFile> refused_artifacts(const CacheLayers& layers, std::string_view arch, std::string_view digest) {
  return refused(layers, ArtifactFiles(kNoRoot, arch, digest).folder(),
                 [&](const CacheLayer& layer) { return layer.find_artifact(arch, digest).status(); });
}

std::vector<VerifiedFile> refused_records(const CacheLayers& layers, std::string_view digest) {
  return refused(layers, record_file(kNoRoot, digest).parent_path(),
                 [&](const CacheLayer& layer) { return layer.find_record(digest).status(); });
}

}  // namespace hstujit
