// Layers that no look-up uses, as a report or a failed look-up names them.
#pragma once

#include <string>
#include <vector>

#include "autotune_cache/store/cache_layer.h"

namespace hstujit {

// Layers on this machine that a look-up passes over as a whole, and why: by path, with one sentence. The
// directory that is written need not exist.
std::vector<VerifiedFile> layers_passed_over(const CacheLayers& layers);

// The same as the end of a sentence about something that no layer has: "; nothing of PATH is used: ..."; empty where
// all are used.
std::string passed_over_text(const CacheLayers& layers);

}  // namespace hstujit
