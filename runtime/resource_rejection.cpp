#include "runtime/resource_rejection.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace hstujit {

std::optional<Rejection> resource_rejection(const std::string& resources) {
  const auto json = nlohmann::ordered_json::parse(resources, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  if (const auto rejects = json.find("rejects"); rejects != json.end() && rejects->is_array()) {
    for (const auto& reject : *rejects) {
      if (reject.is_object()) return Rejection{reject.value("reason", "resources"), reject.value("detail", "")};
    }
  }
  const int64_t spilled = json.value("spill_store_bytes", int64_t{0}) + json.value("spill_load_bytes", int64_t{0});
  if (spilled > 0) return Rejection{"spill", fmt::format("{} bytes of registers spill to memory", spilled)};
  return std::nullopt;
}

}  // namespace hstujit
