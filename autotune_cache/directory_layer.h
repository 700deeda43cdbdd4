// A cache directory as a layer: the files of cache_layout.h.
#pragma once

#include "autotune_cache/cache_layer.h"

namespace hstujit {

class DirectoryLayer : public CacheLayer {
 public:
  DirectoryLayer(std::string path, bool writable) : CacheLayer(std::move(path)), writable_(writable) {}

  bool writable() const override { return writable_; }
  Status health() const override { return {}; }
  Result<LoadedArtifact> find_artifact(std::string_view arch, std::string_view digest) const override;
  Result<TuningRecord> find_record(std::string_view digest) const override;
  std::vector<StoredArtifact> artifacts() const override;
  std::vector<StoredRecord> records() const override;
  std::vector<VerifiedFile> verify() const override;

 private:
  bool writable_;
};

}  // namespace hstujit
