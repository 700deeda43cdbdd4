// Meanings of names and values that are not ours: those of PyTorch, Triton and the papers' code, which people write in
// configs and in calls of the Python package, and misspelt ones. For messages only; nothing is ever read by another
// name than its own.
#pragma once

#include <string_view>
#include <vector>

namespace hstujit {

// Finds the names in `allowed` that the field `written` stands for: several where others have one name for them, none
// where nothing is near.
std::vector<std::string_view> meant_names(std::string_view written, const std::vector<std::string_view>& allowed);

// Whether it stands for an argument of the launches of an operator with these fields, which no config has.
bool is_launch_argument(std::string_view written, const std::vector<std::string_view>& allowed);

// Whether it is what the tuner chooses, by the name that others have for it.
bool is_tunable(std::string_view written);

// Finds the value in `allowed` that `written` of `field` stands for; empty where nothing is near.
std::string_view meant_value(std::string_view field, std::string_view written,
                             const std::vector<std::string_view>& allowed);

}  // namespace hstujit
