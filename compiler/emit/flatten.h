// Flattens a template: its #include lines are replaced by the files, once each, so that NVRTC needs no include path.
//
// A line `#include "row/random.cuh"  // where Random` is for instances whose generated text has that name: the files of
// what others do not use are not in their source.
//
// Lines between `#ifdef NAME`, `#elifdef NAME`, `#else` and `#endif` are for instances in the same way.
//
// common/regions.cuh is left out: it declares the region functions for an IDE, generated source has those that are
// used.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/status.h"
#include "templates/embedded.h"

namespace hstujit {

struct FlatTemplate {
  std::string common;  // the files of common/, in order of first use: they know neither Spec nor regions
  std::string own;     // the other files, the entry last
};

// `generated` is the text that stands before the template's own files; without one, every #include is followed and
// all other lines stay as they are. `first` are files that are there whether the entry includes them or not. kInternal
// when a file includes one that is not among `templates`, or that is neither of common/ nor, for a file outside of
// common/, of the entry's folder.
Result<FlatTemplate> flatten_template(const std::vector<EmbeddedTemplate>& templates, std::string_view entry,
                                      const std::vector<std::string_view>& first,
                                      std::optional<std::string_view> generated = std::nullopt);

}  // namespace hstujit
