// Finds what a misspelt name most likely stands for: for messages about names that are not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hstujit {

// The one of `names` that is most like `wrong`, the first of them where several are; empty when none is near enough to
// be meant: it has few letters that differ, or goes on with more, or has the same words, some of them written out, or
// has all of these words and more between them.
// Upper and lower case are alike, and so are '-' and '_'.
std::string_view closest(std::string_view wrong, const std::vector<std::string_view>& names);

// For the end of a sentence: ", did you mean \"heads\"?"; empty for an empty name. Of several, all are meant.
std::string did_you_mean(std::string_view name);
std::string did_you_mean(const std::vector<std::string_view>& names);

}  // namespace hstujit
