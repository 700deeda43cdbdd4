// Where libnvrtc may be: an ordered list of files and names for the loader, made from the environment and file system.
//
// Order: names that the loader knows (a host process such as PyTorch may have it loaded already), toolkit folders,
// wheels beside this library, wheels of the active environment, wheels of the user and the system.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hstujit {

struct NvrtcPlaces {
  std::function<std::string(const std::string& name)> variable;  // value of an environment variable, "" when unset
  std::string library_folder;                                    // folder of the shared library that asks
  std::string root = "/";                                        // where usr/local/cuda and the like are looked for
};

// The places of this process.
NvrtcPlaces places_of_process();

// A file, or the libnvrtc files inside a folder; the path itself when nothing is there, so that a message can name it.
std::vector<std::string> explicit_candidates(const std::string& path);

// Names first, then files that exist, newest major version first within a folder, without duplicates.
std::vector<std::string> nvrtc_candidates(const NvrtcPlaces& places);

// The folders that nvrtc_candidates looks into, existing or not, for messages; a `*` stands for any version.
std::vector<std::string> nvrtc_folders(const NvrtcPlaces& places);

}  // namespace hstujit
