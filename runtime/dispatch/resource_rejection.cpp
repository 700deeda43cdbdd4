#include "runtime/dispatch/resource_rejection.h"

#include <fmt/format.h>

#include "compiler/support/json.h"

namespace hstujit {

namespace {

int64_t spilled_in(const Json& resources) {
  return integer_member(resources, "spill_store_bytes", 0) + integer_member(resources, "spill_load_bytes", 0);
}

}  // namespace

std::optional<Rejection> resource_rejection(const std::string& resources) {
  const auto json = json_or_null(resources);
  if (!json.is_object()) return std::nullopt;
  if (const auto rejects = json.find("rejects"); rejects != json.end() && rejects->is_array()) {
    for (const auto& reject : *rejects) {
      if (reject.is_object())
        return Rejection{text_member(reject, "reason", "resources"), text_member(reject, "detail")};
    }
  }
  const int64_t spilled = spilled_in(json);
  if (spilled > 0) return Rejection{"spill", fmt::format("{} bytes of registers spill to memory", spilled)};
  return std::nullopt;
}

int64_t spilled_bytes(const std::string& resources) {
  const Json json = json_or_null(resources);
  return json.is_object() ? spilled_in(json) : 0;
}

}  // namespace hstujit
