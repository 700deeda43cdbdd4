// The directories and bundles of a process: one directory to write, others only to read.
#pragma once

#include <string>
#include <vector>

#include "autotune_cache/bundle/bundle_decoder.h"
#include "compiler/support/env.h"
#include "compiler/support/log.h"
#include "compiler/support/trust.h"

namespace hstujit {

struct CacheDirectories {
  std::string user;                    // read and written; empty: nothing is kept beyond this process
  std::vector<std::string> read_only;  // looked at after `user`, in order
  Trust trust = Trust::kOwn;           // HSTUJIT_TRUST_CACHE: what others have written is used, too
  // Decompresses bundles among the files to read.
  BundleDecoder decode = bundle_decoder(Environment::of_values({}));

  // HSTUJIT_CACHE_DIR and what stands in for it, then HSTUJIT_CACHE_PATH. No usable user directory is logged, no error.
  static CacheDirectories from_environment(const Environment& environment, const Log& log);

  // All of them in order of lookup.
  std::vector<std::string> in_order() const;

  // The same from the folder that is current now: a process that goes to another one keeps its caches.
  void make_absolute();
};

}  // namespace hstujit
