#include "runtime/engine/kernel_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "autotune_cache/files/artifact_files.h"
#include "autotune_cache/files/cubin_header.h"
#include "autotune_cache/store/refused_entries.h"
#include "compiler/generator/generator_digest.h"
#include "compiler/plan/compile_options.h"
#include "compiler/plan/skeleton.h"
#include "compiler/support/json.h"
#include "compiler/support/text.h"
#include "runtime/engine/generator_keys.h"
#include "runtime/engine/nearest_entry.h"

namespace hstujit {

namespace {

// Advice about a kernel that was looked for, and then under "fail", where it is not there, and where it is refused.
constexpr std::string_view kPrewarm =
    "run hstujit prewarm with an HSTUJIT_ON_MISS other than \"fail\", or name a bundle that has the kernel in "
    "HSTUJIT_CACHE_PATH";
constexpr std::string_view kBringKernels =
    "run hstujit prewarm where the compiler library is, bring its cache here (hstujit cache export), or allow "
    "\"heuristic\"";
constexpr std::string_view kMendEntry =
    "let the entry be used, put another one in its place (hstujit cache verify names all such files), or allow "
    "\"heuristic\"";

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

KernelBinaryPtr stored_binary(const std::string& digest, Artifact artifact) {
  auto binary = std::make_shared<KernelBinary>();
  binary->digest = digest;
  binary->cubin = std::move(artifact.cubin);
  binary->info = std::move(artifact.info);
  binary->origin = KernelOrigin::kDirectory;
  binary->directory = std::move(artifact.directory);
  return binary;
}

}  // namespace

std::string_view to_string(KernelOrigin origin) {
  switch (origin) {
    case KernelOrigin::kMemory:
      return "memory";
    case KernelOrigin::kDirectory:
      return "directory";
    case KernelOrigin::kCompiled:
      return "compiled";
  }
  return "";
}

ArtifactKey artifact_key(const CompileRequest& request) {
  ArtifactKey key;
  key.generator = kernel_generator(request.spec->op(), request.config);
  key.spec = key_text(*request.spec);
  key.direction = to_string(request.direction);
  key.config = key_text(request.config);
  key.options = compile_options(request.device.arch, kCppStandard, request.lineinfo);
  key.arch = request.device.arch;
  return key;
}

std::string KernelCache::nearest_text(const ArtifactKey& key) {
  const std::lock_guard lock(known_mutex_);
  if (!known_) known_ = std::make_shared<KnownKeys>(store_.list(), store_.layers());
  const std::optional<NearestEntry> nearest = known_->nearest(key);
  if (!nearest) return {};
  return fmt::format("; the nearest entry, {} in {}, {}", shown_digest(nearest->digest), quote(nearest->directory),
                     nearest->sentence());
}

Status KernelCache::missing(const CompileRequest& request, std::string_view policy) {
  HSTUJIT_ASSIGN_OR_RETURN(const Skeleton* skeleton, find_skeleton(request.config.skeleton));
  const ArtifactKey key = artifact_key(request);
  HSTUJIT_ASSIGN_OR_RETURN(const std::string digest, artifact_digest(key));
  const LaunchPlan plan = skeleton->launch_plan(*request.spec, request.config, request.device);
  const std::string kernel = fmt::format("the kernel {} ({}), key {}, for {}", plan.kernel_name,
                                         describe(request.config), shown_digest(digest), key.arch);
  const std::vector<VerifiedFile> refused = refused_artifacts(store_.layers(), key.arch, digest);
  if (refused.empty()) {
    const std::string_view to_do = policy.empty() ? kPrewarm : kBringKernels;
    return Status(Code::kCacheMiss,
                  fmt::format("{} is in no cache directory{}; {}{}", kernel, policy, to_do, nearest_text(key)));
  }
  std::string entries;
  for (const VerifiedFile& entry : refused)
    entries += fmt::format("; the entry in {} is not used: {}", quote(entry.path), entry.problem);
  const std::string_view to_do = policy.empty() ? kPrewarm : kMendEntry;
  return Status(Code::kCacheMiss,
                fmt::format("{} is in the cache and cannot be used{}; {}{}", kernel, policy, to_do, entries));
}

KernelCache::KernelCache(CacheLayers layers, Log log, uint64_t max_bytes, std::vector<std::string> dump,
                         int compile_jobs, std::function<Result<KernelCompilerPtr>()> compiler)
    : store_(std::move(layers), log, max_bytes),
      log_(std::move(log)),
      dump_(std::move(dump)),
      compile_jobs_(compile_jobs),
      slots_(compile_jobs),
      compiler_(std::move(compiler)) {}

KernelBinaryPtr KernelCache::find_in_memory(const std::string& digest) {
  const std::lock_guard lock(mutex_);
  const KernelBinaryPtr* const found = memory_.find(digest);
  return found == nullptr ? nullptr : *found;
}

KernelBinaryPtr KernelCache::look_up(const CompileRequest& request) {
  const ArtifactKey key = artifact_key(request);
  const Result<std::string> digest = artifact_digest(key);
  KernelBinaryPtr binary = digest.ok() ? find_in_memory(*digest) : nullptr;
  if (binary != nullptr) {
    ++counts_.memory;
    return binary;
  }
  if (digest.ok()) binary = load(key, *digest);
  ++(binary == nullptr ? counts_.nowhere : counts_.directory);
  return binary;
}

void KernelCache::remember(const KernelBinaryPtr& binary) {
  const std::lock_guard lock(mutex_);
  memory_.put(binary->digest, binary);
}

KernelBinaryPtr KernelCache::load(const ArtifactKey& key, const std::string& digest, Reach reach) {
  std::optional<Artifact> artifact = store_.find(key, reach);
  if (!artifact) return nullptr;
  KernelBinaryPtr binary = stored_binary(digest, std::move(*artifact));
  remember(binary);
  return binary;
}

KernelBinaryPtr KernelCache::peek(const CompileRequest& request) {
  const ArtifactKey key = artifact_key(request);
  const Result<std::string> digest = artifact_digest(key);
  if (!digest.ok()) return nullptr;
  if (KernelBinaryPtr binary = find_in_memory(*digest)) return binary;
  std::optional<Artifact> artifact = store_.peek(key);
  return artifact ? stored_binary(*digest, std::move(*artifact)) : nullptr;
}

KernelBinaryPtr KernelCache::find(const CompileRequest& request, Reach reach) {
  const ArtifactKey key = artifact_key(request);
  const Result<std::string> digest = artifact_digest(key);
  if (!digest.ok()) return nullptr;
  if (KernelBinaryPtr binary = find_in_memory(*digest)) return binary;
  return load(key, *digest, reach);
}

Result<KernelBinaryPtr> KernelCache::get(const CompileRequest& request, bool may_compile) {
  const ArtifactKey key = artifact_key(request);
  HSTUJIT_ASSIGN_OR_RETURN(const std::string digest, artifact_digest(key));
  if (KernelBinaryPtr binary = find_in_memory(digest)) return binary;
  if (!may_compile) {
    if (KernelBinaryPtr binary = load(key, digest)) return binary;
    return missing(request, ", and the policy on a miss is \"fail\"");
  }

  return flights_.run(digest, [&]() -> Result<KernelBinaryPtr> {
    if (KernelBinaryPtr binary = find_in_memory(digest)) return binary;
    return load_or_compile(request, digest);
  });
}

Result<KernelBinaryPtr> KernelCache::load_or_compile(const CompileRequest& request, const std::string& digest) {
  if (KernelBinaryPtr binary = load(artifact_key(request), digest)) return binary;
  return compile_and_keep(request);
}

Result<KernelBinaryPtr> KernelCache::compile_and_keep(const CompileRequest& request) {
  HSTUJIT_ASSIGN_OR_RETURN(KernelBinary compiled, compile(request));
  return keep(request, std::move(compiled));
}

std::vector<ArtifactNote> KernelCache::notes_of(Blobs& blobs) const {
  constexpr struct {
    std::string_view choice;  // of HSTUJIT_DUMP
    const char* blob;
    std::string_view extension;
  } kKinds[] = {{"ir", "ir", ".mlir"}, {"src", "source", ".cu"}, {"log", "log", ".log"}};
  std::vector<ArtifactNote> notes;
  for (const auto& kind : kKinds) {
    const bool asked = std::find(dump_.begin(), dump_.end(), kind.choice) != dump_.end();
    if (asked) notes.push_back({kind.extension, std::move(blobs[kind.blob])});
  }
  return notes;
}

Result<KernelBinaryPtr> KernelCache::replace(const CompileRequest& request, const KernelBinary& refused) {
  const ArtifactKey key = artifact_key(request);
  const auto is_refused = [&](const KernelBinary& binary) {
    return binary.origin == KernelOrigin::kDirectory && binary.cubin == refused.cubin;
  };
  for (;;) {
    Result<KernelBinaryPtr> fresh = flights_.run(refused.digest, [&]() -> Result<KernelBinaryPtr> {
      KernelBinaryPtr known = find_in_memory(refused.digest);
      if (known && !is_refused(*known)) return known;
      store_.drop(key, refused.cubin);
      // Another process may have replaced it; a read-only directory may still hold the refused one.
      known = load(key, refused.digest);
      if (known && !is_refused(*known)) return known;
      return compile_and_keep(request);
    });
    // A flight that was under way may have been another thread's look-up, which gives the refused one: once more.
    if (!fresh.ok() || !is_refused(**fresh)) return fresh;
  }
}

Result<KernelBinary> KernelCache::compile(const CompileRequest& request) const {
  HSTUJIT_ASSIGN_OR_RETURN(const KernelCompilerPtr compiler, compiler_());
  return compile_by([&](const CompileRequest& wanted) { return compiler->compile(wanted); }, request);
}

Result<KernelBinary> KernelCache::compile_by(const Compile& compile, const CompileRequest& request) const {
  HSTUJIT_ASSIGN_OR_RETURN(const Skeleton* skeleton, find_skeleton(request.config.skeleton));
  const LaunchPlan plan = skeleton->launch_plan(*request.spec, request.config, request.device);
  const CompileSlots::Hold slot(slots_);
  const auto start = std::chrono::steady_clock::now();
  Result<Blobs> blobs = counts_.compiles.run([&] { return compile(request); });
  KernelBinary binary;
  binary.compile_ms = milliseconds_since(start);
  if (log_.enabled(LogCategory::kCompile)) {
    log_.event(LogCategory::kCompile, blobs.ok() ? "compiled" : "failed",
               {{"kernel", plan.kernel_name},
                {"ms", binary.compile_ms},
                {"reason", blobs.ok() ? std::string() : blobs.status().message()}});
  }
  if (!blobs.ok()) return blobs.status();
  if (!is_cubin((*blobs)["cubin"])) {
    return Status(Code::kCompileFailed,
                  fmt::format("the compiler library gave {} bytes for {}, which are no cubin: it is an ELF image",
                              (*blobs)["cubin"].size(), plan.kernel_name));
  }
  HSTUJIT_ASSIGN_OR_RETURN(binary.digest, artifact_digest(artifact_key(request)));
  binary.cubin = std::move((*blobs)["cubin"]);
  binary.info.kernel = plan.kernel_name;
  binary.info.library = library_version();
  Json resources = json_or_null((*blobs)["resources"]);
  if (resources.is_object()) {
    resources.erase("compile_ms");  // entries of the same kernel are the same, byte for byte, whoever compiled it
    binary.info.resources = dump_json(resources);
    binary.info.nvrtc = text_member(resources, "nvrtc");
  }
  binary.notes = notes_of(*blobs);
  return binary;
}

KernelBinaryPtr KernelCache::keep(const CompileRequest& request, KernelBinary binary) {
  const ArtifactKey key = artifact_key(request);
  const std::vector<ArtifactNote> notes = std::exchange(binary.notes, {});
  if (store_.put(key, binary.cubin, binary.info)) store_.annotate(key, notes);
  const auto kept = std::make_shared<const KernelBinary>(std::move(binary));
  remember(kept);
  return kept;
}

}  // namespace hstujit
