// The day, for reports and records.
#pragma once

#include <string>

namespace hstujit {

// Of UTC, as 2026-11-25.
std::string utc_date();

}  // namespace hstujit
