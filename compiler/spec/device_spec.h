// DeviceSpec: the device a kernel is built for. Filled from a driver, a built-in table or a JSON file, so that
// a machine without a GPU can build for one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/fields.h"
#include "compiler/support/status.h"

namespace hstujit {

inline constexpr size_t kLongestDeviceName = 128;  // bytes: it is a part of every key and every table

// Batches of up to twice as many sequences are looked at one by one. Devices have some hundreds.
inline constexpr int64_t kMaxMultiprocessors = 65536;

// Bytes of a multiprocessor's shared memory that the system keeps of each resident CTA.
inline constexpr int64_t kReservedSharedMemory = 1024;

struct DeviceSpec {
  std::string name;  // "NVIDIA H200"
  std::string arch;  // "sm_90a": compute capability with suffix; what NVRTC is given
  int64_t sm_count = 0;
  int64_t shared_memory = 0;   // bytes one block may use after opting in
  int64_t registers = 65536;   // per SM
  int64_t max_threads = 2048;  // resident per SM
  int64_t l2_bytes = 0;

  bool operator==(const DeviceSpec&) const = default;
  int capability() const;  // 90 for sm_90a, 80 for sm_80; -1 for an arch that is none
  // Bytes of a multiprocessor: one CTA may use all but those that are kept of it.
  int64_t multiprocessor_shared_memory() const { return shared_memory + kReservedSharedMemory; }

  static constexpr auto fields() {
    using D = DeviceSpec;
    return std::make_tuple(field("name", &D::name, "product name"),
                           field("arch", &D::arch, "compute architecture with suffix"),
                           field("sm_count", &D::sm_count, "multiprocessors", 1, kMaxMultiprocessors),
                           field("shared_memory", &D::shared_memory, "bytes per block, opted in", 1),
                           field("registers", &D::registers, "32-bit registers per multiprocessor", 65536),
                           field("max_threads", &D::max_threads, "resident threads per multiprocessor", 1),
                           field("l2_bytes", &D::l2_bytes, "bytes of L2 cache"));
  }
};

class Mistakes;

nlohmann::ordered_json to_json(const DeviceSpec& device);
DeviceSpec parse_device_spec(const nlohmann::ordered_json& json, const std::string& path, Mistakes& mistakes);
// The same for what programs have written: fails with the first mistake.
Result<DeviceSpec> parse_device_spec(const nlohmann::ordered_json& json, const std::string& path = "device");
// A device by architecture ("sm_80", "sm_89", "sm_90a") or product name ("NVIDIA H200") from the built-in table.
// An architecture stands for its commonest product; short names ("H200", "RTX 4090") are accepted, in any case. A
// failure calls the name by the `field` that holds it.
Result<DeviceSpec> known_device(std::string_view name_or_arch, std::string_view field = "device");
// The known devices of the same architecture but `device` itself, the most similar number of multiprocessors first.
std::vector<DeviceSpec> nearest_devices(const DeviceSpec& device);
// known_device, else the DeviceSpec in the JSON file of that name.
Result<DeviceSpec> load_device_spec(const std::string& name_or_file, std::string_view field = "device");
// The DeviceSpec in a file that a config names at `path`. Of each mistake it is said where it stands and what is
// allowed there, and nothing of what the file holds: whoever wrote the config may have named any file that this user
// can read. None where there are mistakes.
std::optional<DeviceSpec> load_foreign_device_spec(const std::string& file, const std::string& path,
                                                   Mistakes& mistakes);

}  // namespace hstujit
