// A place where cubins and tuning records are looked up. A process has an ordered list of them: the user's directory,
// which is written, then those that are only read, then a remote cache.
//
// A layer only finds; cache_listing.h enumerates what is in it. What is written goes to the files of the writable one,
// by ArtifactStore and TuningDatabase.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autotune_cache/choice/choice_record.h"
#include "autotune_cache/files/artifact_files.h"
#include "autotune_cache/files/cache_layout.h"
#include "autotune_cache/records/tuning_record.h"
#include "autotune_cache/store/cache_directories.h"
#include "compiler/support/log.h"
#include "compiler/support/status.h"

namespace hstujit {

struct VerifiedFile {
  std::string path;
  std::string problem;  // empty for a good entry; else one sentence
  bool unread = false;  // the system failed (is_system_failure): the entry may be good
};

inline constexpr const char* kMissingLayer =
    "it does not exist; HSTUJIT_CACHE_PATH names what is only read, and HSTUJIT_CACHE_DIR where kernels are kept";

class CacheLayer {
 public:
  explicit CacheLayer(std::string path) : path_(std::move(path)) {}
  virtual ~CacheLayer() = default;
  CacheLayer(const CacheLayer&) = delete;
  CacheLayer& operator=(const CacheLayer&) = delete;

  // The name in logs and reports.
  const std::string& path() const { return path_; }
  virtual bool writable() const = 0;
  // Whether it is only read and is not there: somebody named it who expected something in it.
  virtual bool missing() const { return false; }
  // Its files, where it is a directory; null otherwise.
  virtual const CacheTree* tree() const { return nullptr; }
  // The reason why the whole layer is not used, if there is one. Nothing that is there is no trouble.
  virtual Status health() const = 0;

  // kNotFound when there is none; kIo with the reason when there is one that must not be used; a failure of the system,
  // as is_system_failure says, when there may be one.
  virtual Result<LoadedArtifact> find_artifact(std::string_view arch, std::string_view digest) const = 0;
  virtual Result<TuningRecord> find_record(std::string_view digest) const = 0;
  virtual Result<ChoiceRecord> find_choice(std::string_view digest) const = 0;

  // Whether what it gives is kept in the user directory, so that the next process need not ask for it.
  virtual bool remote() const { return false; }
  // Takes what this process has made, for a layer that passes it on. Returns at once.
  virtual void offer(const ArtifactMetadata& /*metadata*/, const std::string& /*digest*/,
                     std::string_view /*cubin*/) const {}
  virtual void offer(const TuningRecord& /*record*/) const {}

 private:
  std::string path_;
};

using CacheLayerPtr = std::shared_ptr<const CacheLayer>;
// In order of lookup. At most one is writable, the first.
using CacheLayers = std::vector<CacheLayerPtr>;

// A file among those to read is a bundle; `log` is for one that is bad.
CacheLayers open_layers(const CacheDirectories& directories, const Log& log);

// The files of the one that is written; null where there is none.
const CacheTree* writable_tree(const CacheLayers& layers);

// The paths of `layers`, as CacheDirectories says them.
CacheDirectories directories_of(const CacheLayers& layers);

}  // namespace hstujit
