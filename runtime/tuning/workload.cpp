#include "runtime/tuning/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "compiler/support/hash.h"

namespace hstujit {

std::string workload_name(const Lengths& lengths) {
  constexpr size_t kDigits = 16;
  KeyHasher hasher("hstujit-workload");
  hasher.add("max_seq_len", lengths.max_seq_len);
  hasher.add("rows", fmt::format("{}", fmt::join(lengths.rows, ",")));
  hasher.add("num_targets", fmt::format("{}", fmt::join(lengths.num_targets, ",")));
  return fmt::format("b{}-n{}-r{}-t{}-{}", lengths.rows.size(), lengths.max_seq_len,
                     std::accumulate(lengths.rows.begin(), lengths.rows.end(), int64_t{0}),
                     std::accumulate(lengths.num_targets.begin(), lengths.num_targets.end(), int64_t{0}),
                     hasher.finish().substr(0, kDigits));
}

}  // namespace hstujit
