// Flattens a template: its #include lines are replaced by the files, once each, so that NVRTC needs no include path.
//
// common/regions.cuh is left out: it declares the region functions for an IDE, generated source has those that are
// used.
#pragma once

#include <string>
#include <vector>

#include "compiler/support/status.h"
#include "templates/embedded.h"

namespace hstujit {

struct FlatTemplate {
  std::string common;  // the files of common/, in order of first use: they know neither Spec nor regions
  std::string own;     // the other files, the entry last
};

// `first` are files that are there whether the entry includes them or not. kInternal when a file includes one that is
// not among `templates`, or that is neither of common/ nor, for a file outside of common/, of the entry's folder.
Result<FlatTemplate> flatten_template(const std::vector<EmbeddedTemplate>& templates, std::string_view entry,
                                      const std::vector<std::string_view>& first);

}  // namespace hstujit
