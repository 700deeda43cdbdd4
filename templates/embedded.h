// The text of every template, embedded at build time.
#pragma once

#include <string_view>
#include <vector>

namespace hstujit {

struct EmbeddedTemplate {
  std::string_view path;  // relative to templates/, e.g. "common/ptx/mma.cuh"
  std::string_view text;
};

// In order of path.
const std::vector<EmbeddedTemplate>& embedded_templates();

}  // namespace hstujit
