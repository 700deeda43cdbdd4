#include "autotune_cache/files/cache_key.h"

#include <fmt/format.h>

#include "compiler/support/arch.h"
#include "compiler/support/hash.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

constexpr size_t kDigestDigits = 64;

}  // namespace

bool is_arch_name(std::string_view arch) { return arch_number(arch).has_value(); }

bool is_digest(std::string_view text) {
  return text.size() == kDigestDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::vector<std::pair<std::string, std::string>> ArtifactKey::named_fields() const {
  // Each option is a field of its own, so that no separator can be part of one.
  std::vector<std::pair<std::string, std::string>> fields = {
      {"generator", generator}, {"spec", spec}, {"direction", direction}, {"config", config}, {"arch", arch}};
  for (const std::string& option : options) fields.emplace_back("option", option);
  return fields;
}

Result<std::string> artifact_digest(const ArtifactKey& key) {
  if (!is_arch_name(key.arch))
    return Status(Code::kInvalidArgument,
                  fmt::format("arch is {}; a cache key needs one like \"sm_90a\"", quote(key.arch)));
  KeyHasher hasher("hstujit-artifact");
  hasher.add("schema", kArtifactSchema);
  for (const auto& [name, text] : key.named_fields()) {
    if (text.empty())
      return Status(Code::kInvalidArgument, fmt::format("field {} of a cache key is empty; it must be set", name));
    hasher.add(name, text);
  }
  return hasher.finish();
}

}  // namespace hstujit
