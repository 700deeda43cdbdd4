// `struct Spec`, `struct Config` and `struct Params` of generated source, from field lists and slots.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/kernel_config.h"
#include "compiler/plan/launch_plan.h"
#include "compiler/plan/skeleton.h"
#include "compiler/support/status.h"

namespace hstujit {

// "block_m" -> "kBlockM"
std::string constant_name(std::string_view field);

// Prints what `user`, the text of the kernel, names: what it does not read leaves no trace in its source, whose timings
// then stay valid for every value of it.

// `values` is a spec's JSON, `schema` its operator's. Integers and booleans become int, other numbers double, exactly;
// enumerations one bool per spelling that the field allows. `mask_trivial` exists for operators with a mask, and
// `operands` are further members (operand_printer.h), which are printed whole.
// kUnsupported for a parameter that is none of these, or an integer that an int does not hold.
Result<std::string> print_spec(const nlohmann::ordered_json& values, const nlohmann::ordered_json& schema,
                               std::optional<bool> mask_trivial, std::string_view operands, std::string_view user);
// The fields of `config`, and `derived` after them.
std::string print_config(const KernelConfig& config, const Constants& derived, std::string_view user);

std::string print_params(const std::vector<ParamSlot>& slots);

}  // namespace hstujit
