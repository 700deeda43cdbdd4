// A bundle file as a layer that is only read. It is read, and its digest checked, by the first look-up, and then kept
// in memory; a file that is no whole bundle is logged once and has no entries.
#pragma once

#include <cstddef>
#include <filesystem>
#include <mutex>

#include "autotune_cache/bundle/bundle.h"
#include "autotune_cache/store/cache_listing.h"
#include "compiler/support/log.h"

namespace hstujit {

class BundleLayer : public CacheLayer {
 public:
  // With Trust::kOwn a file that belongs to somebody who is neither root nor this user, that anybody may write, or in
  // whose place anybody can put another one, is not read.
  BundleLayer(std::string path, Trust trust, BundleDecoder decode, Log log)
      : CacheLayer(std::move(path)), trust_(trust), decode_(std::move(decode)), log_(std::move(log)) {}

  bool writable() const override { return false; }
  Status health() const override;
  Result<LoadedArtifact> find_artifact(std::string_view arch, std::string_view digest) const override;
  Result<TuningRecord> find_record(std::string_view digest) const override;
  Result<ChoiceRecord> find_choice(std::string_view digest) const override;
  // As cache_listing.h says.
  std::vector<StoredArtifact> artifacts(Status* failure = nullptr) const;
  std::vector<StoredRecord> records(Status* failure = nullptr) const;
  std::vector<StoredChoice> choices(Status* failure = nullptr) const;
  std::vector<VerifiedFile> verify() const;
  std::vector<VerifiedFile> folders_passed_over() const;
  // The digest of its contents; empty where it is no bundle.
  std::string sha256() const;

 private:
  // Null when the file is no bundle.
  const Bundle* bundle() const;
  Result<std::string> read() const;
  Status check_head(std::string_view head, uint64_t size) const;
  Status no_bundle(const Status& status) const;  // with the file's name
  Result<std::shared_ptr<const Bundle>> load() const;
  // The bytes of that name in the bundle, with the limits of a look-up in a directory: kNotFound when it has nothing,
  // kIo when that is larger than `max` bytes.
  Result<std::string_view> file(const std::filesystem::path& name, size_t max) const;

  Trust trust_;
  BundleDecoder decode_;
  Log log_;
  mutable std::once_flag once_;
  mutable Status status_;
  mutable std::shared_ptr<const Bundle> bundle_;
};

}  // namespace hstujit
