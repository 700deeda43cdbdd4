// Cases that several tests would repeat: in a run for each change every case is in one of these tests, in the nightly
// run in all of them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace hstujit {

// Whether HSTUJIT_TEST_ALL is set, as in the nightly run (.ci/run).
inline bool tests_repeat_all() { return std::getenv("HSTUJIT_TEST_ALL") != nullptr; }

// The cases of test `part` of so many: every `parts`-th one, or all of them.
template <class Case>
std::vector<Case> share_of(const std::vector<Case>& cases, size_t part, size_t parts) {
  if (tests_repeat_all()) return cases;
  std::vector<Case> share;
  for (size_t i = part; i < cases.size(); i += parts) share.push_back(cases[i]);
  return share;
}

}  // namespace hstujit
