// The text of every template, embedded at build time, and their digest, which generated source says in its header.
#pragma once

#include <string_view>
#include <vector>

namespace hstujit {

struct EmbeddedTemplate {
  std::string_view path;  // relative to templates/, e.g. "common/mma.cuh"
  std::string_view text;
};

// In order of path.
const std::vector<EmbeddedTemplate>& embedded_templates();

// SHA-256 over the paths and texts of all of them, 64 hexadecimal digits. Cache keys hold generator_digest() of
// compiler/generator/generator_digest.h, which covers the templates and everything else that decides generated source.
std::string_view template_digest();

}  // namespace hstujit
