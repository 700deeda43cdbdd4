#include "autotune_cache/cache_layer.h"

#include <filesystem>
#include <iterator>
#include <system_error>

#include "autotune_cache/bundle_layer.h"
#include "autotune_cache/directory_layer.h"

namespace hstujit {

CacheLayers open_layers(const CacheDirectories& directories, const Log& log) {
  CacheLayers layers;
  if (!directories.user.empty()) layers.push_back(std::make_shared<DirectoryLayer>(directories.user, true));
  for (const std::string& path : directories.read_only) {
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) {
      layers.push_back(std::make_shared<BundleLayer>(path, log));
    } else {
      layers.push_back(std::make_shared<DirectoryLayer>(path, false));
    }
  }
  return layers;
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

std::vector<VerifiedFile> verify_layers(const CacheLayers& layers) {
  std::vector<VerifiedFile> report;
  for (const CacheLayerPtr& layer : layers) {
    std::vector<VerifiedFile> files = layer->verify();
    report.insert(report.end(), std::make_move_iterator(files.begin()), std::make_move_iterator(files.end()));
  }
  return report;
}

}  // namespace hstujit
