#include "runtime/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "autotune_cache/remote/remote_layer.h"
#include "autotune_cache/store/directory_layer.h"
#include "compiler/plan/kernel_config.h"
#include "compiler/support/config_aliases.h"
#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/parallel.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"
#include "runtime/engine/shipped_records.h"

namespace hstujit {

namespace {

Result<MissPolicy> policy_from(const Environment& environment) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, environment.choice(Env::kOnMiss));
  if (text == "tune") return MissPolicy::kTune;
  if (text == "fail") return MissPolicy::kFail;
  return MissPolicy::kHeuristic;
}

// At most. NVRTC needs memory for each (docs/deployment.md).
constexpr int kDefaultCompileJobs = 16;

Result<int> compile_jobs_from(const Environment& environment) {
  HSTUJIT_ASSIGN_OR_RETURN(const int64_t jobs, environment.number(Env::kCompileJobs));
  return jobs > 0 ? static_cast<int>(jobs) : std::min(available_threads(), kDefaultCompileJobs);
}

// Reads the variable, and checks its fields as far as that does not depend on the config that they change; null where
// it is not set.
Result<Json> override_from(const Environment& environment) {
  if (!environment.is_set(Env::kOverride)) return Json();
  const std::string name(environment_variable(Env::kOverride).name), text = environment.text(Env::kOverride);
  const Result<Json> fields = parse_json(text);
  if (!fields.ok()) {
    return Status(Code::kInvalidArgument, fmt::format("{} is {} ({}); allowed: a JSON object of config fields", name,
                                                      quote(text), fields.status().message()));
  }
  if (const Status status = check_config_fields(*fields, name); !status.ok())
    return Status(Code::kInvalidArgument, status.message());
  return with_current_names(*fields);
}

}  // namespace

std::string_view to_string(MissPolicy policy) {
  switch (policy) {
    case MissPolicy::kHeuristic:
      return "heuristic";
    case MissPolicy::kTune:
      return "tune";
    case MissPolicy::kFail:
      return "fail";
  }
  return "";
}

OperationsSettings operations_settings(const EngineOptions& options) {
  OperationsSettings settings;
  settings.environment = options.environment;
  settings.cache_dir = options.cache_dir;
  settings.cache_path = options.cache_path;
  if (options.on_miss == MissPolicy::kHeuristic) settings.on_miss = HSTUJIT_ON_MISS_HEURISTIC;
  if (options.on_miss == MissPolicy::kTune) settings.on_miss = HSTUJIT_ON_MISS_TUNE;
  if (options.on_miss == MissPolicy::kFail) settings.on_miss = HSTUJIT_ON_MISS_FAIL;
  settings.deterministic = options.deterministic;
  settings.diagnose = options.diagnose;
  settings.log = options.log;
  return settings;
}

void Engine::accept(Env variable, const Status& status) {
  if (!status.ok()) wrong_variables_.push_back({variable, status});
}

Status Engine::refusal() const {
  if (wrong_variables_.empty()) return {};
  std::string lines;
  for (const WrongVariable& wrong : wrong_variables_) lines += (lines.empty() ? "" : "\n") + wrong.status.message();
  return Status(wrong_variables_.front().status.code(), lines);
}

void Engine::read_settings(EngineOptions& options) {
  const auto take = [this](Env variable, auto setting, auto& into) {
    if (setting.ok()) into = std::move(*setting);
    accept(variable, setting.status());
  };
  if (options.log) {
    log_ = Log(std::move(options.log));
  } else {
    take(Env::kLog, Log::from_environment(environment_), log_);
  }
  if (options.on_miss) {
    on_miss_ = *options.on_miss;
  } else {
    take(Env::kOnMiss, policy_from(environment_), on_miss_);
  }
  std::string mode;
  take(Env::kLengthMode, environment_.choice(Env::kLengthMode), mode);
  length_mode_ = parse_length_mode(mode).value_or(LengthMode::kPow2);
  take(Env::kDeterministic, environment_.flag(Env::kDeterministic), deterministic_);
  deterministic_ = deterministic_ || options.deterministic;
  take(Env::kCheck, environment_.flag(Env::kCheck), check_);
  take(Env::kLineinfo, environment_.flag(Env::kLineinfo), lineinfo_);
  take(Env::kCacheMaxBytes, environment_.size(Env::kCacheMaxBytes), max_bytes_);
  take(Env::kTrustCache, environment_.flag(Env::kTrustCache), trust_cache_);
  take(Env::kDump, environment_.choices(Env::kDump), dump_);
  take(Env::kCompileJobs, compile_jobs_from(environment_), compile_jobs_);
  take(Env::kOverride, override_from(environment_), override_fields_);
  if (environment_.is_set(Env::kFrozen))
    accept(Env::kFrozen,
           freeze(environment_.text(Env::kFrozen), !options.has_counterpart).with_context("HSTUJIT_FROZEN"));
}

Result<EnginePtr> Engine::create(EngineOptions options) {
  const EnginePtr engine(new Engine(options));
  const Environment& environment = engine->environment_;
  engine->read_settings(options);
  const Status upload = environment.flag(Env::kRemoteUpload).status();
  engine->accept(Env::kRemoteUpload, upload);
  const Result<CacheLayerPtr> remote = open_remote_layer(environment, engine->log_);
  if (upload.ok()) engine->accept(Env::kRemoteCache, remote.status());
  if (!options.diagnose) HSTUJIT_RETURN_IF_ERROR(engine->refusal());

  CacheDirectories directories;
  if (options.cache_dir && options.cache_path) {
    directories.user = *options.cache_dir;
  } else {
    directories = CacheDirectories::from_environment(environment, options.has_counterpart ? Log() : engine->log_);
    if (options.cache_dir) directories.user = *options.cache_dir;
  }
  if (options.cache_path) {
    directories.read_only.clear();
    for (std::string& path : split(*options.cache_path, ':')) {
      if (!path.empty()) directories.read_only.push_back(std::move(path));
    }
  }
  engine->compiler_ = std::move(options.compiler);
  engine->host_ = std::move(options.host);
  engine->shipped_records_ = options.records ? *options.records : hstujit::shipped_records();
  directories.make_absolute();
  directories.trust = engine->trust_cache_ ? Trust::kAll : Trust::kOwn;
  directories.decode = bundle_decoder(environment);
  engine->host_objects_ = environment.text(Env::kHostCache);
  if (engine->host_objects_.empty() && !directories.user.empty()) engine->host_objects_ = directories.user + "/host";
  CacheLayers layers = open_layers(directories, engine->log_);
  // One for both, so that both leave it alone after a failure of either.
  if (remote.ok() && *remote) layers.push_back(*remote);
  CacheLayers records = layers;
  if (!engine->shipped_records_.empty()) {
    // A user who can write them can write the library beside them.
    records.push_back(std::make_shared<DirectoryLayer>(engine->shipped_records_, false, Trust::kAll, engine->log_));
  }
  engine->tuning_ = std::make_unique<TuningDatabase>(std::move(records), engine->log_);
  // The cache lives as long as the engine, so it may refer to it.
  Engine* const self = engine.get();
  engine->kernels_ =
      std::make_unique<KernelCache>(std::move(layers), engine->log_, static_cast<uint64_t>(engine->max_bytes_),
                                    engine->dump_, engine->compile_jobs_, [self] { return self->compiler(); });
  return engine;
}

Status Engine::freeze(const std::string& path, bool logged) {
  if (environment_.is_set(Env::kOverride)) {
    return Status(
        Code::kInvalidArgument,
        "HSTUJIT_OVERRIDE and HSTUJIT_FROZEN are both set; an override would change what is frozen, unset one");
  }
  const Result<std::string> text = read_file(path, kMaxChoicesBytes);
  // As for one that does not exist, the value is wrong.
  if (text.status().code() == Code::kIo) return Status(Code::kInvalidArgument, text.status().message());
  HSTUJIT_RETURN_IF_ERROR(text.status());
  HSTUJIT_ASSIGN_OR_RETURN(frozen_, FrozenChoices::parse(*text, path));
  if (logged) {
    log_.event(LogCategory::kDispatch, "frozen",
               {{"file", path}, {"checksum", frozen_->checksum()}, {"choices", frozen_->size()}});
  }
  return {};
}

Result<CudaDriverPtr> Engine::driver() {
  const std::lock_guard lock(mutex_);
  if (!driver_) {
    HSTUJIT_ASSIGN_OR_RETURN(driver_, CudaDriver::open(environment_.text(Env::kCudaDriver)));
  }
  return driver_;
}

Result<KernelCompilerPtr> Engine::compiler() {
  const std::lock_guard lock(mutex_);
  if (!compiler_) {
    HSTUJIT_ASSIGN_OR_RETURN(compiler_, open_compiler_library(environment_));
  }
  return compiler_;
}

Result<HostBackendPtr> Engine::host() {
  const std::lock_guard lock(mutex_);
  if (!host_) {
    HSTUJIT_ASSIGN_OR_RETURN(host_, open_host_library(environment_, host_objects_));
  }
  return host_;
}

Result<OperationsPtr> Engine::operations() {
  const std::lock_guard lock(mutex_);
  if (!operations_) {
    HSTUJIT_ASSIGN_OR_RETURN(operations_, OperationsContext::create(settings_));
  }
  return operations_;
}

Result<DeviceSpec> Engine::device(int ordinal) {
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, this->driver());
  const std::lock_guard lock(mutex_);
  if (const auto found = devices_.find(ordinal); found != devices_.end()) return found->second;
  HSTUJIT_ASSIGN_OR_RETURN(DeviceSpec spec, query_device(*driver, ordinal));
  devices_.emplace(ordinal, spec);
  return spec;
}

Result<DeviceSpec> Engine::target(const char* name, const std::optional<DeviceSpec>& configured, int ordinal) {
  if (name != nullptr && *name != 0) return load_device_spec(name, "arch");
  if (configured) return *configured;
  Result<DeviceSpec> present = device(ordinal < 0 ? 0 : ordinal);
  if (present.ok()) return present;
  return Status(present.status().code(),
                "no device is given (the config's \"device\", or arch), and there is no GPU to take it from: " +
                    present.status().message());
}

Result<ModulePtr> Engine::module(const KernelBinary& binary, const DeviceContext& context, const LaunchPlan& plan) {
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, this->driver());
  return modules_.get(driver, binary, context, plan);
}

void Engine::record_miss(const std::string& line) {
  if (!records_misses()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!recorded_.insert(line).second) return;
  }
  const Status status = append_line(environment_.text(Env::kRecord), line, kMaxRecordedBytes);
  if (!status.ok()) {
    log_.event(LogCategory::kDispatch, "not-recorded", {{"reason", status.message()}});
    const std::lock_guard lock(mutex_);
    recorded_.erase(line);
  }
}

}  // namespace hstujit
