// Examines this machine: driver, GPUs, libraries, cache directories, and what is wrong with them. Something missing is
// a finding, not a failure.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include "autotune_cache/remote/remote_url.h"
#include "compiler/generator/generator_digest.h"
#include "compiler/support/arch.h"
#include "compiler/support/credentials.h"
#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"
#include "compiler/support/trust.h"
#include "operations/configs/cache_health.h"
#include "operations/configs/operation.h"
#include "operations/tuning/worker/worker_process.h"
#include "operations/tuning/worker/worker_program.h"

namespace hstujit {

namespace {

// Whether append_line has a file to append to, or may make one. Looks alone: whoever asks wants no file.
Status check_appending(const std::string& path) {
  const auto refuse = [&](int error) { return file_error("write", path, error); };
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return refuse(EISDIR);
    if (S_ISREG(info.st_mode) && static_cast<size_t>(info.st_size) >= kMaxRecordedBytes) return refuse(EFBIG);
    return ::access(path.c_str(), W_OK) == 0 ? Status() : refuse(errno);
  }
  if (errno != ENOENT) return refuse(errno);
  const std::string folder = std::filesystem::path(path).parent_path().native();
  return ::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0 ? Status() : refuse(errno);
}

// The parts of the report as they are found; each adds what is wrong with it.
class Doctor {
 public:
  explicit Doctor(Engine& engine) : engine_(engine) {}

  Json report() {
    Json report = {{"library", {{"version", library_version()}, {"generator", generator_digest()}}},
                   {"driver", driver_json()},
                   {"devices", devices_json()},
                   {"compiler", compiler_json()},
                   {"nvrtc", nvrtc_json()},
                   {"host_backend", host_json()},
                   {"worker", worker_json()},
                   {"cache", caches_json()},
                   {"on_miss", to_string(engine_.on_miss())},
                   {"length_mode", to_string(engine_.length_mode())},
                   {"environment", environment_json()}};
    const bool healthy = std::none_of(findings_.begin(), findings_.end(),
                                      [](const Finding& finding) { return finding.severity == Severity::kError; });
    report["healthy"] = healthy;
    report["findings"] = Json::array();
    for (const Finding& finding : findings_) {
      report["findings"].push_back({{"severity", to_string(finding.severity)},
                                    {"about", finding.about},
                                    {"problem", finding.problem},
                                    {"what_to_do", finding.what_to_do}});
    }
    return report;
  }

 private:
  static Json missing(const Status& status) { return {{"ok", false}, {"problem", status.message()}}; }

  void add(Severity severity, const std::string& about, const std::string& problem, const std::string& what_to_do) {
    findings_.push_back({severity, about, hide_credentials(problem), what_to_do});
  }
  void add(std::vector<Finding> findings) {
    std::move(findings.begin(), findings.end(), std::back_inserter(findings_));
  }

  // With `fail`, nothing is compiled anyhow, and all kernels come from the caches.
  bool compiles() const { return engine_.on_miss() != MissPolicy::kFail; }
  Severity of_compiling() const { return compiles() ? Severity::kError : Severity::kWarning; }
  Severity of_caches() const { return compiles() ? Severity::kWarning : Severity::kError; }

  Json driver_json() {
    const auto driver = engine_.driver();
    if (driver.ok()) return {{"ok", true}, {"path", (*driver)->path()}, {"version", (*driver)->version()}};
    add(Severity::kError, "driver", driver.status().message(),
        "install the NVIDIA driver, or point HSTUJIT_CUDA_DRIVER at libcuda.so.1; prewarm, emit, explain and the host "
        "backend work without it");
    return missing(driver.status());
  }

  Json devices_json() {
    Json devices = Json::array();
    const auto driver = engine_.driver();
    if (!driver.ok()) return devices;
    const auto no_device = [this](const std::string& problem) {
      add(Severity::kError, "device", problem, "look at what nvidia-smi says, and at CUDA_VISIBLE_DEVICES");
    };
    const auto count = device_count(**driver);
    if (!count.ok()) no_device(count.status().message());
    if (count.ok() && *count == 0) no_device("the driver has no GPU");
    for (int ordinal = 0; count.ok() && ordinal < *count; ++ordinal) {
      const auto device = engine_.device(ordinal);
      devices.push_back(device.ok() ? to_json(*device) : missing(device.status()));
      if (device.ok()) {
        devices_.push_back(*device);
      } else {
        no_device(fmt::format("GPU {}: {}", ordinal, device.status().message()));
      }
    }
    return devices;
  }

  Json compiler_json() {
    const auto compiler = engine_.compiler();
    if (compiler.ok()) return {{"ok", true}, {"path", (*compiler)->path()}};
    add(of_compiling(), "compiler", compiler.status().message(),
        "install libhstujit_compiler.so of this very build next to libhstujit.so, or point HSTUJIT_COMPILER_LIBRARY at "
        "it; without it only kernels of the caches work");
    return missing(compiler.status());
  }

  // The one that a compile would use: the compiler library looks for it.
  Json nvrtc_json() {
    const auto compiler = engine_.compiler();
    if (!compiler.ok()) return missing(compiler.status().with_context("the compiler library, which opens NVRTC"));
    const auto nvrtc = (*compiler)->nvrtc();
    const Environment& environment = engine_.environment();
    const std::string install = fmt::format(
        "{}; without it only kernels of the caches work",
        environment.is_set(Env::kNvrtc)
            ? fmt::format("HSTUJIT_NVRTC is {}: unset it, or name a libnvrtc 12.4 or newer, or the folder of one",
                          quote(environment.text(Env::kNvrtc)))
            : "install a newer NVRTC (of the CUDA toolkit, or from PyPI), or point HSTUJIT_NVRTC at one");
    if (!nvrtc.ok()) {
      add(of_compiling(), "nvrtc", nvrtc.status().message(), install);
      return missing(nvrtc.status());
    }
    for (size_t i = 0; i < devices_.size() && !nvrtc->archs.empty(); ++i) {
      const auto number = arch_number(devices_[i].arch);
      if (std::find(nvrtc->archs.begin(), nvrtc->archs.end(), number.value_or(0)) != nvrtc->archs.end()) continue;
      add(of_compiling(), "nvrtc",
          fmt::format("NVRTC {} at {} cannot compile for {} of {}", nvrtc->version, nvrtc->path, devices_[i].arch,
                      devices_[i].name),
          install);
      break;
    }
    return {{"ok", true}, {"path", nvrtc->path}, {"version", nvrtc->version}};
  }

  Json host_json() {
    const auto host = engine_.host();
    if (host.ok()) return {{"ok", true}, {"path", (*host)->path()}};
    add(Severity::kWarning, "host_backend", host.status().message(),
        "install libhstujit_host.so of this very build next to libhstujit.so, or point HSTUJIT_HOST_LIBRARY at it; "
        "nothing but the host backend needs it");
    return missing(host.status());
  }

  // Starts one, as tuning does: only so it says which build it is of.
  static Status worker_status(const std::optional<std::string>& program) {
    constexpr std::chrono::seconds kLimit{10};
    if (!program) {
      return Status(Code::kNotFound,
                    "there is no hstujit-worker in this installation; candidates run in the tuning process, which a "
                    "faulty one ends");
    }
    if (!is_program(*program)) {
      return Status(Code::kNotFound, fmt::format("HSTUJIT_WORKER is {}, which is no executable that this user can run",
                                                 quote(*program)));
    }
    return WorkerProcess::start(*program, kLimit).status();
  }

  Json worker_json() {
    const Environment& environment = engine_.environment();
    const auto program = worker_program(environment);
    if (!program && environment.is_set(Env::kWorker)) return {{"ok", true}, {"path", "none"}};
    const Status status = worker_status(program);
    if (status.ok()) return {{"ok", true}, {"path", *program}};
    add(program && engine_.on_miss() == MissPolicy::kTune ? Severity::kError : Severity::kWarning, "worker",
        status.message(),
        "install hstujit-worker of this very build with the library, or point HSTUJIT_WORKER at it; only tuning needs "
        "it");
    return missing(status);
  }

  // `role`: "user", which is written, or what is only read: "read_only", "shipped" (tuning records alone).
  static Json directory_json(const std::string& path, const PathHealth& health, std::string_view role) {
    Json row = {{"path", path}, {"exists", health.exists}, {"role", role}};
    row["ok"] = role == "user" ? health.writable : health.exists;
    if (!health.network.empty()) row["file_system"] = health.network;
    if (health.group_writable) row["group_writable"] = true;
    return row;
  }

  // Describes a layer on this machine. One that is not used as a whole has this finding alone.
  Json layer_json(const CacheLayer& layer) {
    const PathHealth path = path_health(layer.path());
    const bool writable = layer.writable();
    Json row = directory_json(layer.path(), path, writable ? "user" : "read_only");
    const Status health = layer.health();
    if (!health.ok()) {
      row["ok"] = false;
      row["problem"] = health.message();
    }
    if (writable && !path.is_directory) {
      add(user_directory_findings(layer.path(), path));
    } else if (says_distrust(health.message())) {
      add(of_caches(), writable ? "cache" : "HSTUJIT_CACHE_PATH", std::string(without_remedy(health.message())),
          kTrustAdvice);
    } else if (!health.ok()) {
      add(of_caches(), writable ? "cache" : "HSTUJIT_CACHE_PATH", health.message(),
          health.code() == Code::kNoCompiler ? "install libhstujit_bundle.so next to libhstujit.so, of the same release"
          : path.is_directory                ? "let this user read it, or name another one"
          : layer.tree() == nullptr          ? "copy the bundle again, or export it anew"
                                             : "name a directory or a bundle");
    } else if (writable) {
      add(user_directory_findings(layer.path(), path));
      if (path.writable) add(folder_findings(*layer.tree()));
      add(clock_findings(*layer.tree()));
      add(entry_findings(layer));
    } else if (path.exists) {
      add(entry_findings(layer));
    } else {
      add(of_caches(), "HSTUJIT_CACHE_PATH", fmt::format("the cache {} does not exist", quote(layer.path())),
          "take it out of HSTUJIT_CACHE_PATH, which names what is only read, or put a directory or bundle there; "
          "HSTUJIT_CACHE_DIR is where kernels are kept");
    }
    return row;
  }

  Json remote_json(const CacheLayer& layer) {
    const Status health = layer.health();
    Json row = {{"path", layer.path()}, {"exists", health.ok()}, {"role", "remote"}, {"ok", health.ok()}};
    if (health.ok()) return row;
    row["problem"] = health.message();
    add(Severity::kWarning, "HSTUJIT_REMOTE_CACHE", health.message(),
        "look whether the server runs and the URL is right; until it answers, kernels are compiled where no other "
        "cache has them");
    return row;
  }

  Json caches_json() {
    Json caches = Json::array();
    const CacheLayers& layers = engine_.kernels().store().layers();
    if (std::none_of(layers.begin(), layers.end(), [](const CacheLayerPtr& layer) { return layer->writable(); })) {
      add(Severity::kWarning, "cache",
          "there is no cache directory: HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are all unset; kernels are compiled "
          "again in every process",
          "set HSTUJIT_CACHE_DIR");
    }
    for (const CacheLayerPtr& layer : layers) {
      caches.push_back(layer->remote() ? remote_json(*layer) : layer_json(*layer));
    }
    if (const std::string& shipped = engine_.shipped_records(); !shipped.empty())
      caches.push_back(directory_json(shipped, path_health(shipped), "shipped"));
    return caches;
  }

  Json environment_json() {
    const Environment& environment = engine_.environment();
    Json variables = Json::object();
    std::vector<std::string_view> known;
    for (const EnvVariable& variable : environment_variables()) {
      known.push_back(variable.name);
      if (environment.is_set(variable.id))
        variables[std::string(variable.name)] = hide_credentials(environment.text(variable.id));
    }
    // A report is sent to others, and a URL may hold a password, also one that came into the wrong variable.
    if (const auto remote = variables.find("HSTUJIT_REMOTE_CACHE"); remote != variables.end()) {
      const auto url = parse_remote_url(remote->get<std::string>());
      *remote = url.ok() ? url->base : "(no URL)";
    }
    for (const WrongVariable& wrong : engine_.wrong_variables()) {
      const char* const advice =
          wrong.variable != Env::kFrozen       ? "unset it, or give it a value that is allowed; no process can use the "
                                                 "library until then"
          : environment.is_set(Env::kOverride) ? "keep HSTUJIT_FROZEN, unless you are debugging"
                                               : "unset it, or make the file anew with hstujit freeze of this build";
      for (const std::string& line : split(wrong.status.message(), '\n'))
        add(Severity::kError, std::string(environment_variable(wrong.variable).name), line, advice);
    }
    const std::vector<WrongVariable>& wrong = engine_.wrong_variables();
    const bool bad_override = std::any_of(
        wrong.begin(), wrong.end(), [](const WrongVariable& variable) { return variable.variable == Env::kOverride; });
    if (environment.is_set(Env::kOverride) && !bad_override) {
      add(Severity::kWarning, "HSTUJIT_OVERRIDE",
          "HSTUJIT_OVERRIDE is set: it replaces fields of every kernel's config, tuned ones, too",
          "unset it, unless you are debugging");
    }
    if (environment.is_set(Env::kRecord)) {
      if (const Status status = check_appending(environment.text(Env::kRecord)); !status.ok()) {
        add(Severity::kWarning, "HSTUJIT_RECORD", status.message(),
            "let this user write it, or name another file; what is not there is listed nowhere until then");
      }
    }
    for (const std::string& name : environment.unknown()) {
      const std::string_view near = closest(name, known);
      add(Severity::kWarning, name, fmt::format("{} is set and is no variable of this library; it does nothing", name),
          near.empty() ? "unset it; docs/environment.md lists the variables"
                       : fmt::format("did you mean {}? Otherwise unset it", near));
    }
    return variables;
  }

  Engine& engine_;
  std::vector<DeviceSpec> devices_;  // those that could be asked
  std::vector<Finding> findings_;
};

}  // namespace

Json doctor(Engine& engine) { return Doctor(engine).report(); }

}  // namespace hstujit
