// Entries that are there and that no look-up uses: why a kernel or a record that somebody has put into a cache is a
// miss.
#pragma once

#include <string_view>
#include <vector>

#include "autotune_cache/store/cache_layer.h"

namespace hstujit {

// The layers, by path, that have an entry of this key, or a folder for it, that a look-up passes over, and why: it is
// damaged, is not to be trusted, or cannot be read for the moment (`unread`). None of a layer that is passed over as a
// whole, which layers_passed_over names.
std::vector<VerifiedFile> refused_artifacts(const CacheLayers& layers, std::string_view arch, std::string_view digest);
std::vector<VerifiedFile> refused_records(const CacheLayers& layers, std::string_view digest);

}  // namespace hstujit
