// What this machine has: driver, GPUs, libraries, cache directories. Something missing is a finding, not a failure.
#include <unistd.h>

#include <filesystem>

#include "autotune_cache/remote/remote_url.h"
#include "compiler/generator/generator_digest.h"
#include "runtime/operations/operation.h"

namespace hstujit {

namespace {

Json finding(const Status& status) { return {{"ok", false}, {"problem", status.message()}}; }

Json driver_json(Engine& engine) {
  const auto driver = engine.driver();
  if (!driver.ok()) return finding(driver.status());
  return {{"ok", true}, {"path", (*driver)->path()}, {"version", (*driver)->version()}};
}

Json devices_json(Engine& engine) {
  Json devices = Json::array();
  const auto driver = engine.driver();
  if (!driver.ok()) return devices;
  const auto count = device_count(**driver);
  for (int ordinal = 0; count.ok() && ordinal < *count; ++ordinal) {
    const auto device = engine.device(ordinal);
    devices.push_back(device.ok() ? to_json(*device) : finding(device.status()));
  }
  return devices;
}

// The one that a compile would use: the compiler library looks for it.
Json nvrtc_json(Engine& engine) {
  const auto compiler = engine.compiler();
  if (!compiler.ok()) return finding(compiler.status().with_context("the compiler library, which opens NVRTC"));
  const auto nvrtc = (*compiler)->nvrtc();
  if (!nvrtc.ok()) return finding(nvrtc.status());
  return {{"ok", true}, {"path", nvrtc->path}, {"version", nvrtc->version}};
}

// `role`: "user", which is written, or what is only read: "read_only", "shipped" (tuning records alone).
Json directory_json(const std::string& path, std::string_view role) {
  const bool writable = role == "user";
  std::error_code error;
  Json row = {{"path", path}, {"exists", std::filesystem::exists(path, error)}, {"role", role}};
  if (!writable) {
    row["ok"] = row["exists"];
    return row;
  }
  // A directory that does not exist yet is made by the first write, below the nearest one that does.
  std::filesystem::path nearest = path;
  while (!nearest.empty() && nearest.has_relative_path() && !std::filesystem::exists(nearest, error)) {
    nearest = nearest.parent_path();
  }
  row["ok"] = !path.empty() && access(nearest.empty() ? "." : nearest.c_str(), W_OK) == 0;
  return row;
}

Json remote_json(const CacheLayer& layer) {
  const Status health = layer.health();
  Json row = {{"path", layer.path()}, {"exists", health.ok()}, {"role", "remote"}, {"ok", health.ok()}};
  if (!health.ok()) row["problem"] = health.message();
  return row;
}

template <typename T>
Json library_json(const Result<std::shared_ptr<const T>>& library) {
  if (!library.ok()) return finding(library.status());
  return {{"ok", true}, {"path", (*library)->path()}};
}

}  // namespace

Json doctor(Engine& engine) {
  const CacheDirectories& directories = engine.kernels().store().directories();
  Json caches = Json::array();
  if (!directories.user.empty()) caches.push_back(directory_json(directories.user, "user"));
  for (const CacheLayerPtr& layer : engine.kernels().store().layers()) {
    if (layer->writable()) continue;
    if (layer->remote()) {
      caches.push_back(remote_json(*layer));
      continue;
    }
    caches.push_back(directory_json(layer->path(), "read_only"));
    if (const Status health = layer->health(); !health.ok()) {
      caches.back()["ok"] = false;
      caches.back()["problem"] = health.message();
    }
  }
  if (!engine.shipped_records().empty()) caches.push_back(directory_json(engine.shipped_records(), "shipped"));
  Json variables = Json::object();
  for (const EnvVariable& variable : environment_variables()) {
    if (engine.environment().is_set(variable.id)) {
      variables[std::string(variable.name)] = engine.environment().text(variable.id);
    }
  }
  // A report is sent to others, and the URL may hold a password.
  if (const auto remote = variables.find("HSTUJIT_REMOTE_CACHE"); remote != variables.end()) {
    *remote = parse_remote_url(remote->get<std::string>())->base;
  }
  return {{"library", {{"version", library_version()}, {"generator", generator_digest()}}},
          {"driver", driver_json(engine)},
          {"devices", devices_json(engine)},
          {"compiler", library_json(engine.compiler())},
          {"nvrtc", nvrtc_json(engine)},
          {"host_backend", library_json(engine.host())},
          {"cache", std::move(caches)},
          {"on_miss", to_string(engine.on_miss())},
          {"length_mode", to_string(engine.length_mode())},
          {"environment", std::move(variables)}};
}

}  // namespace hstujit
