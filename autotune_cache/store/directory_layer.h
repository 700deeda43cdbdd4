// A cache directory as a layer: the files of cache_layout.h.
#pragma once

#include "autotune_cache/store/cache_listing.h"

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
  // As cache_listing.h says.
  std::vector<StoredArtifact> artifacts(Status* failure = nullptr) const;
  std::vector<StoredRecord> records(Status* failure = nullptr) const;
  std::vector<StoredChoice> choices(Status* failure = nullptr) const;
  std::vector<VerifiedFile> verify() const;
  std::vector<VerifiedFile> folders_passed_over() const;

 private:
  bool writable_;
  CacheTree tree_;
};

}  // namespace hstujit
