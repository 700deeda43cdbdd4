// Cubins by key: this process's memory, then the cache layers, then the compiler; one flight per key. Memory has the
// cubins that were used last, kMostInMemory of them.
//
// Threads that ask for one cold key at the same time wait for the first one's look-up and compile. No lock is held over
// either, so that other keys go on.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "autotune_cache/store/artifact_store.h"
#include "compiler/support/log.h"
#include "compiler/support/recent_map.h"
#include "runtime/engine/compile_slots.h"
#include "runtime/engine/compiler_library.h"
#include "runtime/engine/engine_stats.h"
#include "runtime/engine/single_flight.h"

namespace hstujit {

class KnownKeys;

enum class KernelOrigin { kMemory, kDirectory, kCompiled };
std::string_view to_string(KernelOrigin origin);  // "memory" "directory" "compiled"

struct KernelBinary {
  std::string digest;
  std::string cubin;
  ArtifactInfo info;
  KernelOrigin origin = KernelOrigin::kCompiled;  // where the first caller got it
  std::string directory;                          // kDirectory: which one
  double compile_ms = 0;                          // kCompiled
  std::vector<ArtifactNote> notes;                // of compile(), for keep(): what HSTUJIT_DUMP asks for
};
using KernelBinaryPtr = std::shared_ptr<const KernelBinary>;

ArtifactKey artifact_key(const CompileRequest& request);

class KernelCache {
 public:
  static constexpr size_t kMostInMemory = 1024;

  // `dump`: values of HSTUJIT_DUMP. So many compiles as `compile_jobs` are under way at once, the others wait.
  // `compiler` is asked for at the first miss only.
  KernelCache(CacheLayers layers, Log log, uint64_t max_bytes, std::vector<std::string> dump, int compile_jobs,
              std::function<Result<KernelCompilerPtr>()> compiler);

  // kCacheMiss when no layer has the kernel and `may_compile` is false.
  Result<KernelBinaryPtr> get(const CompileRequest& request, bool may_compile);

  // kCacheMiss: no layer has a kernel of the request that can be used. It is named, its key, and how the nearest entry
  // differs; where an entry of its own is there and is passed over, why.
  Status missing(const CompileRequest& request) { return missing(request, ""); }

  // Memory and layers only; null for a miss.
  KernelBinaryPtr find(const CompileRequest& request, Reach reach = Reach::kAll);

  // The same for a call, and counted.
  KernelBinaryPtr look_up(const CompileRequest& request);

  // The same, and nothing is written or kept.
  KernelBinaryPtr peek(const CompileRequest& request);

  // For a kernel that came from a directory, whole, and that the driver refuses: compiles it anew in place of the
  // stored one, so that the next process finds the new one. Of the threads that have the same refused kernel, one
  // compiles.
  Result<KernelBinaryPtr> replace(const CompileRequest& request, const KernelBinary& refused);

  // Compiles, whatever the layers have, and keeps nothing: for tuning candidates.
  Result<KernelBinary> compile(const CompileRequest& request) const;
  // The same by another compiler than the cache's own.
  using Compile = std::function<Result<Blobs>(const CompileRequest&)>;
  Result<KernelBinary> compile_by(const Compile& compile, const CompileRequest& request) const;

  // Keeps a cubin that compile() returned in memory and in the user directory.
  KernelBinaryPtr keep(const CompileRequest& request, KernelBinary binary);

  ArtifactStore& store() { return store_; }
  const LookUpCounts& counts() const { return counts_; }
  int compile_jobs() const { return compile_jobs_; }

 private:
  KernelBinaryPtr find_in_memory(const std::string& digest);
  // `policy`: what forbids to compile the kernel, ahead of what to do about it; empty where it was only looked for.
  Status missing(const CompileRequest& request, std::string_view policy);
  std::string nearest_text(const ArtifactKey& key);
  Result<KernelBinaryPtr> load_or_compile(const CompileRequest& request, const std::string& digest);
  Result<KernelBinaryPtr> compile_and_keep(const CompileRequest& request);
  KernelBinaryPtr load(const ArtifactKey& key, const std::string& digest, Reach reach = Reach::kAll);
  void remember(const KernelBinaryPtr& binary);
  std::vector<ArtifactNote> notes_of(Blobs& blobs) const;

  ArtifactStore store_;
  Log log_;
  std::vector<std::string> dump_;
  int compile_jobs_;
  CompileSlots slots_;
  std::function<Result<KernelCompilerPtr>()> compiler_;
  mutable LookUpCounts counts_;

  SingleFlight<Result<KernelBinaryPtr>> flights_;  // by digest
  std::mutex mutex_;                               // held for a look into the map only
  RecentMap<std::string, KernelBinaryPtr> memory_{kMostInMemory};
  std::mutex known_mutex_;
  std::shared_ptr<KnownKeys> known_;  // at the first miss that is told of, for those after it
};

}  // namespace hstujit
