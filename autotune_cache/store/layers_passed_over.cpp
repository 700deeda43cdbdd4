#include "autotune_cache/store/layers_passed_over.h"

#include <fmt/format.h>

#include "compiler/support/text.h"

namespace hstujit {

std::vector<VerifiedFile> layers_passed_over(const CacheLayers& layers) {
  std::vector<VerifiedFile> passed;
  for (const CacheLayerPtr& layer : layers) {
    if (layer->remote()) continue;
    const Status problem = layer->tree() != nullptr ? layer->tree()->problem() : layer->health();
    if (!problem.ok()) {
      passed.push_back({layer->path(), problem.message()});
    } else if (layer->missing()) {
      passed.push_back({layer->path(), kMissingLayer});
    }
  }
  return passed;
}

std::string passed_over_text(const CacheLayers& layers) {
  std::string text;
  for (const VerifiedFile& layer : layers_passed_over(layers)) {
    text += fmt::format("; nothing of {} is used: {}", quote(layer.path), layer.problem);
  }
  return text;
}

}  // namespace hstujit
