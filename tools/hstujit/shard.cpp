#include "tools/hstujit/shard.h"

#include <fmt/format.h>

#include <optional>

#include "compiler/support/numbers.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"
#include "hstujit/hstujit.h"

namespace hstujit {

namespace {

using Variable = std::function<std::string(const char*)>;

struct Launcher {
  const char* name;
  const char* index;
  const char* count;  // null: it does not tell
};

// The innermost first: torchrun and mpirun run inside the allocations of Slurm, and all of them inside pods.
constexpr Launcher kLaunchers[] = {{"torchrun", "RANK", "WORLD_SIZE"},
                                   {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI", "PMI_RANK", "PMI_SIZE"},
                                   {"Slurm", "SLURM_PROCID", "SLURM_NTASKS"},
                                   {"Kubernetes", "JOB_COMPLETION_INDEX", nullptr}};

constexpr std::string_view kAuto = "auto";

std::optional<int> number_of(std::string_view text) {
  const std::optional<uint64_t> number = whole_number(text);
  if (!number || *number > HSTUJIT_MAX_SHARDS) return std::nullopt;
  return static_cast<int>(*number);
}

Status not_allowed(const std::string& text) {
  const std::string_view first = std::string_view(text).substr(0, text.find('/'));
  const std::string meant = first == kAuto ? std::string() : did_you_mean(closest(first, {kAuto}));
  return Status(
      Code::kInvalidArgument,
      fmt::format("{} is not allowed{}; it must be INDEX/COUNT with 0 <= INDEX < COUNT <= {}, auto, or auto/COUNT",
                  quote(text), meant, HSTUJIT_MAX_SHARDS));
}

Result<ShardOption> checked(const std::string& said, std::optional<int> index, std::optional<int> count) {
  if (!index || !count || *count < 1 || *count > HSTUJIT_MAX_SHARDS || *index < 0 || *index >= *count)
    return not_allowed(said);
  return ShardOption{*index, *count};
}

Result<ShardOption> of_launcher(const std::string& text, const std::string& count_text, const Variable& variable) {
  std::string looked_for;
  for (const Launcher& launcher : kLaunchers) {
    looked_for += fmt::format("{}{} ({})", looked_for.empty() ? "" : ", ", launcher.index, launcher.name);
    const std::string index = variable(launcher.index);
    if (index.empty()) continue;
    const std::string launched = launcher.count == nullptr ? std::string() : variable(launcher.count);
    const std::string& count = count_text.empty() ? launched : count_text;
    if (!launched.empty() && number_of(launched) != number_of(count)) {
      return Status(Code::kInvalidArgument,
                    fmt::format("{} with {}={} of {} would leave parts out or do some twice; auto takes that count",
                                quote(text), launcher.count, launched, launcher.name));
    }
    if (count.empty()) {
      return Status(
          Code::kInvalidArgument,
          fmt::format("{} needs a launcher that says how many there are, and {} says only {}={}; give auto/COUNT",
                      quote(text), launcher.name, launcher.index, index));
    }
    const std::string total = count_text.empty() ? fmt::format(" and {}={}", launcher.count, count) : "";
    return checked(fmt::format("{} with {}={}{} of {}", text, launcher.index, index, total, launcher.name),
                   number_of(index), number_of(count));
  }
  return Status(
      Code::kInvalidArgument,
      fmt::format("{} needs a launcher, and no launcher's variable is set; looked for {}", quote(text), looked_for));
}

}  // namespace

Result<ShardOption> parse_shard(const std::string& text, const Variable& variable) {
  const size_t slash = text.find('/');
  const std::string first = text.substr(0, slash);
  const std::string second = slash == std::string::npos ? std::string() : text.substr(slash + 1);
  if (slash != std::string::npos && number_of(second).value_or(0) < 1) return not_allowed(text);
  if (first == kAuto) return of_launcher(text, second, variable);
  return checked(text, number_of(first), number_of(second));
}

}  // namespace hstujit
