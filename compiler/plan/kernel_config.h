// KernelConfig: the choice. Which skeleton, and everything that it lets the tuner vary.
//
// Each family has its own fields, in JSON they lie beside the skeleton's name. Not every skeleton of a family reads
// every field; a field that a skeleton does not read keeps its default, so that two configs are equal exactly when they
// give the same source.
//
// The bounds are those of every device there is, so that no template meets a size that it would divide by, or one whose
// products overflow; what a template needs beyond them is for its reject() to say.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>

#include "compiler/plan/attention_config.h"
#include "compiler/plan/gemm_config.h"
#include "compiler/plan/row_config.h"
#include "compiler/plan/scan_config.h"
#include "compiler/spec/family.h"
#include "compiler/spec/fields.h"
#include "compiler/support/status.h"

namespace hstujit {

// How a kernel is compiled for compute-sanitizer. Never tuned: no search space has one that is on.
struct SanitizerSwitches {
  bool lanes_arrive = false;  // sm90: every lane, not one per warp, arrives on barriers; for racecheck

  bool operator==(const SanitizerSwitches&) const = default;

  static constexpr auto fields() {
    return std::make_tuple(field("lanes_arrive", &SanitizerSwitches::lanes_arrive, "every lane arrives on barriers"));
  }
};

struct KernelConfig {
  using Tunables = std::variant<AttentionConfig, RowConfig, ScanConfig, GemmConfig>;  // in the order of Family

  std::string skeleton;  // "attention/sm90_forward"
  Tunables tunables;
  SanitizerSwitches sanitizer = {};

  bool operator==(const KernelConfig&) const = default;

  Family family() const { return static_cast<Family>(tunables.index()); }
  // Tunables of one family, to which this config must belong.
  AttentionConfig& attention() { return std::get<AttentionConfig>(tunables); }
  const AttentionConfig& attention() const { return std::get<AttentionConfig>(tunables); }
  RowConfig& row() { return std::get<RowConfig>(tunables); }
  const RowConfig& row() const { return std::get<RowConfig>(tunables); }
};

// Calls visit(field, value) for each field of the tunables, then for each switch.
template <typename Visitor>
void for_each_config_field(const KernelConfig& config, Visitor&& visit) {
  std::visit([&](const auto& tunables) { for_each_field(tunables, visit); }, config.tunables);
  for_each_field(config.sanitizer, visit);
}

// How functions of an element are computed: "mufu", "accurate"; the latter of a family that has no such functions.
std::string_view activation_of(const KernelConfig& config);

nlohmann::ordered_json to_json(const KernelConfig& config);
// Names of earlier libraries are read as those of today (config_aliases.h). kInvalidConfig, also for a skeleton that
// this build does not have: its name says which fields there are.
// `path` stands in front of the fields in sentences.
Result<KernelConfig> parse_kernel_config(const nlohmann::ordered_json& json, const std::string& path = "config");
// Checks some fields of a config before it is known which config they change: that each is a field, of the family of
// the skeleton where that is among them, and has a value that it may have. kInvalidConfig with a line for each that is
// wrong.
Status check_config_fields(const nlohmann::ordered_json& json, const std::string& path);
// Text of a config in cache keys and tuning records: JSON of the skeleton and of the fields that differ from their
// defaults. A field that is added later leaves the text of every older config as it was; for the same reason a default
// never changes.
std::string key_text(const KernelConfig& config);
// Whether two configs differ, if at all, only in what does not change how many registers a kernel needs.
bool same_registers(const KernelConfig& a, KernelConfig b);
// For tables: "sm90_forward 128x128 stages=2 consumers=2 persistent". Fields with their default are left out, and two
// configs of one operator that differ read differently.
std::string describe(const KernelConfig& config);

}  // namespace hstujit
