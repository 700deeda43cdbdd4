// The day, for reports and records.
#pragma once

#include <string>

namespace hstujit {

// The date in UTC, as 2026-11-25.
std::string utc_date();

}  // namespace hstujit
