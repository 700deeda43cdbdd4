// A cache directory as a layer: the files of cache_layout.h.
#pragma once

#include "autotune_cache/cache_layer.h"

namespace hstujit {

class DirectoryLayer : public CacheLayer {
 public:
  DirectoryLayer(std::string path, bool writable, Trust trust, const Log& log)
      : CacheLayer(std::move(path)), writable_(writable), tree_(this->path(), trust, log) {}

  bool writable() const override { return writable_; }
  bool missing() const override;
  const CacheTree* tree() const override { return &tree_; }
  Status health() const override { return tree_.health(); }
  Result<LoadedArtifact> find_artifact(std::string_view arch, std::string_view digest) const override;
  Result<TuningRecord> find_record(std::string_view digest) const override;
  Result<ChoiceRecord> find_choice(std::string_view digest) const override;
  using CacheLayer::artifacts, CacheLayer::records, CacheLayer::choices;
  std::vector<StoredArtifact> artifacts(Status* failure) const override;
  std::vector<StoredRecord> records(Status* failure) const override;
  std::vector<StoredChoice> choices(Status* failure) const override;
  std::vector<VerifiedFile> verify() const override;
  std::vector<VerifiedFile> passed_over() const override;

 private:
  bool writable_;
  CacheTree tree_;
};

}  // namespace hstujit
