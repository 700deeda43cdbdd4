// The metadata beside a cubin: what it was built from and by, and how to tell that its bytes are whole.
//
// Invariants of the text: a JSON object whose "checksum" is the SHA-256 of the same object without it, in compact form;
// "key" has the digest that names the file; "size" and "sha256" are those of the cubin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "autotune_cache/files/cache_key.h"
#include "compiler/support/status.h"

namespace hstujit {

// Facts about a cubin beyond its key, from its writer.
struct ArtifactInfo {
  std::string kernel;            // the extern "C" symbol
  std::string nvrtc;             // version of the compiler: "13.0"
  std::string library;           // version of this library
  std::string resources = "{}";  // a JSON object: registers, spills, shared memory

  bool operator==(const ArtifactInfo&) const = default;
};

struct ArtifactMetadata {
  ArtifactKey key;
  ArtifactInfo info;
  uint64_t size = 0;   // of the cubin
  std::string sha256;  // of the cubin
};

// kInvalidArgument when it is too large to be read again.
Result<std::string> format_metadata(const ArtifactMetadata& metadata);

// kIo with what is wrong when the text breaks an invariant or belongs to another digest; kOutOfMemory.
Result<ArtifactMetadata> parse_metadata(std::string_view text, std::string_view digest);

}  // namespace hstujit
