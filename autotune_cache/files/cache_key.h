// The key of a compiled kernel: everything that decides its bytes, and nothing else, as SHA-256 over named fields.
//
// The version of NVRTC is not in the key: a serving machine without NVRTC must be able to compute it. The version is in
// the entry's metadata instead, and prune can drop what a given version built. No field may hold an absolute path.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/support/status.h"

namespace hstujit {

// Raised when the meaning of a field changes, so that old entries are never found again.
inline constexpr int kArtifactSchema = 1;

struct ArtifactKey {
  std::string generator;             // of the skeleton and the operator: compiler/generator/generator_digest.h
  std::string spec;                  // key_text of compiler/spec/op_spec.h
  std::string direction;             // "forward", "backward"
  std::string config;                // key_text of compiler/plan/kernel_config.h
  std::vector<std::string> options;  // of compile_options()
  std::string arch;                  // with suffix: "sm_90a"

  bool operator==(const ArtifactKey&) const = default;

  // Every field as (name, text), in the order of the key; the metadata of an entry shows the same list.
  std::vector<std::pair<std::string, std::string>> named_fields() const;
};

// 64 hexadecimal digits. kInvalidArgument when a field is empty or `arch` cannot be the name of a folder.
Result<std::string> artifact_digest(const ArtifactKey& key);

// "sm_" and letters or digits, "sm_90a": it names a folder of the cache.
bool is_arch_name(std::string_view arch);
// 64 lower-case hexadecimal digits.
bool is_digest(std::string_view text);

}  // namespace hstujit
