#include "operations/tuning/data/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "compiler/spec/sequence_rows.h"
#include "compiler/support/hash.h"

namespace hstujit {

std::string workload_name(const Lengths& lengths) {
  constexpr size_t kDigits = 16;
  KeyHasher hasher("hstujit-workload");
  hasher.add("max_seq_len", lengths.max_seq_len);
  hasher.add("rows", fmt::format("{}", fmt::join(lengths.rows, ",")));
  hasher.add("num_targets", fmt::format("{}", fmt::join(lengths.num_targets, ",")));
  if (!lengths.num_contexts.empty())
    hasher.add("num_contexts", fmt::format("{}", fmt::join(lengths.num_contexts, ",")));
  std::string queries;
  for (const auto& [axis, rows] : lengths.other_rows) {
    const bool of_queries = axis == kQueryAxis;  // whose name stored records have
    hasher.add(of_queries ? "delta_rows" : axis, fmt::format("{}", fmt::join(rows, ",")));
    queries += fmt::format("-{}{}", of_queries ? "q" : axis, lengths.total_rows(axis));
  }
  return fmt::format("b{}-n{}-r{}-t{}{}-{}", lengths.rows.size(), lengths.max_seq_len, lengths.total_rows(),
                     std::accumulate(lengths.num_targets.begin(), lengths.num_targets.end(), int64_t{0}), queries,
                     hasher.finish().substr(0, kDigits));
}

}  // namespace hstujit
