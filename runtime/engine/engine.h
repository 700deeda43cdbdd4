// Engine: what one context of the C API owns. Cache layers, policy, log, and the libraries that are opened when needed.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autotune_cache/store/tuning_database.h"
#include "compiler/spec/length_bucket.h"
#include "compiler/support/env.h"
#include "compiler/support/json.h"
#include "compiler/support/log.h"
#include "runtime/engine/engine_stats.h"
#include "runtime/engine/frozen_choices.h"
#include "runtime/engine/host_library.h"
#include "runtime/engine/kernel_cache.h"
#include "runtime/engine/loaded_modules.h"
#include "runtime/engine/operations_library.h"

namespace hstujit {

class MissTuner;  // runtime/dispatch/miss_tuner.h

enum class MissPolicy { kHeuristic, kTune, kFail };
std::string_view to_string(MissPolicy policy);  // "heuristic" "tune" "fail"

struct EngineOptions {
  Environment environment = Environment::of_process();
  std::optional<MissPolicy> on_miss;       // else HSTUJIT_ON_MISS
  std::optional<std::string> cache_dir;    // else HSTUJIT_CACHE_DIR and what stands in for it
  std::optional<std::string> cache_path;   // else HSTUJIT_CACHE_PATH; separated by ':'
  std::optional<std::string> records;      // shipped tuning records; else those installed with the library. Empty: none
  Log::Sink log;                           // else HSTUJIT_LOG decides, to standard error
  KernelCompilerPtr compiler;              // else libhstujit_compiler.so
  HostBackendPtr host;                     // else libhstujit_host.so
  std::shared_ptr<const MissTuner> tuner;  // else that of libhstujit_operations.so
  LoadedModules::Limits modules;           // how many are loaded
  bool deterministic = false;              // as HSTUJIT_DETERMINISTIC, which need not be set then
  bool has_counterpart = false;  // in libhstujit_operations.so, of a caller's engine that has logged its settings
  bool diagnose = false;         // a variable that would end create() is kept as a problem, for doctor
};

// Settings of an engine of libhstujit_operations.so that is as one of these options.
OperationsSettings operations_settings(const EngineOptions& options);

// A variable with which no engine can be created.
struct WrongVariable {
  Env variable;
  Status status;
};

class Engine {
 public:
  // kInvalidArgument with a line for each environment variable that has a value that is not allowed; what
  // FrozenChoices::parse and read_file say.
  static Result<std::shared_ptr<Engine>> create(EngineOptions options);

  const Environment& environment() const { return environment_; }
  const std::vector<WrongVariable>& wrong_variables() const { return wrong_variables_; }  // of EngineOptions::diagnose
  const Log& log() const { return log_; }
  MissPolicy on_miss() const { return on_miss_; }
  LengthMode length_mode() const { return length_mode_; }
  bool deterministic() const { return deterministic_; }  // of the options, or HSTUJIT_DETERMINISTIC
  bool check() const { return check_; }                  // HSTUJIT_CHECK
  bool lineinfo() const { return lineinfo_; }            // HSTUJIT_LINEINFO
  // HSTUJIT_OVERRIDE, in the names of today; null where there is none.
  const nlohmann::ordered_json& override_fields() const { return override_fields_; }

  KernelCache& kernels() { return *kernels_; }
  const FrozenChoices* frozen() const { return frozen_ ? &*frozen_ : nullptr; }  // HSTUJIT_FROZEN
  TuningDatabase& tuning() { return *tuning_; }
  const std::string& shipped_records() const { return shipped_records_; }  // the last layer of tuning(); "": none
  SingleFlight<Status>& tunings() { return tunings_; }  // under way because of a miss, by tuning digest

  // Each is opened by its first caller. Success is kept; a failure is tried again by the next call, so that a library
  // installed meanwhile is found.
  Result<CudaDriverPtr> driver();
  Result<KernelCompilerPtr> compiler();
  Result<HostBackendPtr> host();
  Result<OperationsPtr> operations();

  // Tuner of the options; null where there is none.
  const MissTuner* tuner() const { return tuner_.get(); }

  // Asked of the driver once per device.
  Result<DeviceSpec> device(int ordinal);
  // `name` as in prewarm's --arch; else the config's device; else the GPU `ordinal`.
  Result<DeviceSpec> target(const char* name, const std::optional<DeviceSpec>& configured, int ordinal);

  // As LoadedModules::get.
  Result<ModulePtr> module(const KernelBinary& binary, const DeviceContext& context, const LaunchPlan& plan);
  const LoadedModules& modules() const { return modules_; }
  EngineStats& stats() { return stats_; }

  // Whether there is a recording file (HSTUJIT_RECORD).
  bool records_misses() const { return environment_.is_set(Env::kRecord); }
  // Appends the line of a miss to it, if there is one and this engine has not done so already.
  void record_miss(const std::string& line);

 private:
  // Reads settings of the environment and of `options` that have a value of their own kind. Mistakes go to
  // `wrong_variables_`, and the setting stays as it is.
  void read_settings(EngineOptions& options);
  Status freeze(const std::string& path, bool logged);
  void accept(Env variable, const Status& status);
  // A line for each of `wrong_variables_`.
  Status refusal() const;

  explicit Engine(const EngineOptions& options)
      : environment_(options.environment),
        settings_(operations_settings(options)),
        tuner_(options.tuner),
        modules_(options.modules) {}

  Environment environment_;
  OperationsSettings settings_;
  std::shared_ptr<const MissTuner> tuner_;
  std::vector<WrongVariable> wrong_variables_;
  nlohmann::ordered_json override_fields_;
  Log log_;
  MissPolicy on_miss_ = MissPolicy::kHeuristic;
  LengthMode length_mode_ = LengthMode::kPow2;
  bool deterministic_ = false;
  bool check_ = false;
  bool lineinfo_ = false;
  int64_t max_bytes_ = 0;
  bool trust_cache_ = false;  // HSTUJIT_TRUST_CACHE
  int compile_jobs_ = 1;
  std::vector<std::string> dump_;
  std::unique_ptr<KernelCache> kernels_;
  std::unique_ptr<TuningDatabase> tuning_;
  std::string shipped_records_;
  std::optional<FrozenChoices> frozen_;
  SingleFlight<Status> tunings_;
  LoadedModules modules_;
  EngineStats stats_;

  std::mutex mutex_;  // of what follows; never held over a compile or a launch
  CudaDriverPtr driver_;
  KernelCompilerPtr compiler_;
  HostBackendPtr host_;
  std::string host_objects_;  // folder of their machine code
  OperationsPtr operations_;
  std::map<int, DeviceSpec> devices_;
  std::set<std::string> recorded_;  // lines of record_miss, which are no more than the file takes
};

using EnginePtr = std::shared_ptr<Engine>;

}  // namespace hstujit
