#include "autotune_cache/store/cache_layer.h"

#include <filesystem>
#include <system_error>

#include "autotune_cache/store/bundle_layer.h"
#include "autotune_cache/store/directory_layer.h"

namespace hstujit {

CacheLayers open_layers(const CacheDirectories& directories, const Log& log) {
  CacheLayers layers;
  if (!directories.user.empty())
    layers.push_back(std::make_shared<DirectoryLayer>(directories.user, true, directories.trust, log));
  for (const std::string& path : directories.read_only) {
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) {
      layers.push_back(std::make_shared<BundleLayer>(path, directories.trust, directories.decode, log));
    } else {
      layers.push_back(std::make_shared<DirectoryLayer>(path, false, directories.trust, log));
    }
  }
  return layers;
}

const CacheTree* writable_tree(const CacheLayers& layers) {
  return !layers.empty() && layers.front()->writable() ? layers.front()->tree() : nullptr;
}

CacheDirectories directories_of(const CacheLayers& layers) {
  CacheDirectories directories;
  for (const CacheLayerPtr& layer : layers) {
    if (layer->writable()) {
      directories.user = layer->path();
    } else {
      directories.read_only.push_back(layer->path());
    }
  }
  return directories;
}

}  // namespace hstujit
