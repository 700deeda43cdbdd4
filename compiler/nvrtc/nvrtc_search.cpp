#include "compiler/nvrtc/nvrtc_search.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "compiler/support/dynamic_library.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNames = {"libnvrtc.so.13", "libnvrtc.so.12"};
// Inside a site-packages folder: the wheels of CUDA 13, then those of CUDA 12.
constexpr std::array kWheelFolders = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

// The later of two equal-looking versions first: "cuda-13.0" before "cuda-12.8" before "cuda-9.2".
bool newer_first(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return a.size() > b.size();
  return a > b;
}

std::vector<std::string> matches(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found = {};
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  std::sort(paths.begin(), paths.end(), newer_first);
  return paths;
}

void add_once(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

void add_toolkit(std::vector<std::string>& folders, const std::string& home) {
  if (home.empty()) return;
  add_once(folders, (fs::path(home) / "lib64").native());
  add_once(folders, (fs::path(home) / "targets/x86_64-linux/lib").native());
  add_once(folders, (fs::path(home) / "targets/sbsa-linux/lib").native());
}

void add_wheels(std::vector<std::string>& folders, const fs::path& site_packages) {
  for (const char* folder : kWheelFolders) add_once(folders, (site_packages / folder).native());
}

}  // namespace

NvrtcPlaces places_of_process() {
  NvrtcPlaces places;
  places.variable = [](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return std::string(value != nullptr ? value : "");
  };
  places.library_folder = folder_of_code(reinterpret_cast<const void*>(&places_of_process));
  return places;
}

std::vector<std::string> nvrtc_folders(const NvrtcPlaces& places) {
  std::vector<std::string> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"}) add_toolkit(folders, places.variable(name));
  const fs::path root = places.root;
  add_toolkit(folders, (root / "usr/local/cuda").native());
  add_toolkit(folders, (root / "usr/local/cuda-*").native());
  add_toolkit(folders, (root / "opt/cuda").native());
  for (const char* folder : {"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64"})
    add_once(folders, (root / folder).native());

  // Installed as a wheel, this library is in site-packages/hstujit/ or one folder below it.
  if (!places.library_folder.empty()) {
    const fs::path folder = places.library_folder;
    add_wheels(folders, folder.parent_path());
    add_wheels(folders, folder.parent_path().parent_path());
  }
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = places.variable(name);
    if (prefix.empty()) continue;
    add_once(folders, (fs::path(prefix) / "lib").native());
    add_wheels(folders, fs::path(prefix) / "lib/python3*/site-packages");
  }
  if (const std::string home = places.variable("HOME"); !home.empty())
    add_wheels(folders, fs::path(home) / ".local/lib/python3*/site-packages");
  add_wheels(folders, root / "usr/local/lib/python3*/site-packages");
  add_wheels(folders, root / "usr/local/lib/python3*/dist-packages");
  add_wheels(folders, root / "usr/lib/python3*/site-packages");
  return folders;
}

std::vector<std::string> nvrtc_candidates(const NvrtcPlaces& places) {
  std::vector<std::string> candidates(kNames.begin(), kNames.end());
  for (const std::string& pattern : nvrtc_folders(places)) {
    for (const std::string& folder : matches(pattern)) {
      for (const char* name : kNames) {
        const fs::path file = fs::path(folder) / name;
        std::error_code error;
        if (fs::exists(file, error)) add_once(candidates, file.native());
      }
    }
  }
  return candidates;
}

std::vector<std::string> explicit_candidates(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> candidates;
  for (const char* inner : {"", "lib64", "lib"}) {
    for (const char* name : kNames) {
      const fs::path file = fs::path(path) / inner / name;
      if (fs::exists(file, error)) add_once(candidates, file.native());
    }
  }
  // A folder without the library: let the message name what was expected in it.
  if (candidates.empty()) candidates.push_back((fs::path(path) / kNames.front()).native());
  return candidates;
}

}  // namespace hstujit
