// The page of `hstujit report`, report_page.html, which the build embeds.
#pragma once

#include <string_view>

namespace hstujit {

// HTML with "@REPORT@" once, where the JSON goes: explain, cache, bench (docs/reports.md), version and date.
std::string_view report_page();

}  // namespace hstujit
