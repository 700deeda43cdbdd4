// The JSON config: which operator instances a model calls, on which device, and how they are tuned (docs/config.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/device_spec.h"
#include "compiler/spec/length_bucket.h"
#include "compiler/spec/limits.h"
#include "compiler/spec/mistakes.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/run_limits.h"
#include "compiler/support/shared_integers.h"

namespace hstujit {

struct Tuning {
  LengthMode length_mode = LengthMode::kPow2;
  double budget_s = 120;
  bool exhaustive = false;
  bool deterministic = false;

  bool operator==(const Tuning&) const = default;

  static constexpr auto fields() {
    using T = Tuning;
    return std::make_tuple(
        field("length_mode", &T::length_mode, "how max_seq_len is quantised in tuning keys").one_of(kLengthModeNames),
        field("budget_s", &T::budget_s, "seconds that tuning the whole file may take", 0, kMaxBudgetSeconds),
        field("exhaustive", &T::exhaustive, "time also the candidates that the cost model expects to be far slower"),
        field("deterministic", &T::deterministic, "only kernels whose results are bitwise equal run after run"));
  }
};

// Lengths drawn evenly from [low * max_seq_len, high * max_seq_len].
struct UniformLengths {
  std::string distribution = "uniform";
  double low = 0.2;
  double high = 1.0;
  int64_t batch = 256;
  int64_t seed = 1;

  bool operator==(const UniformLengths&) const = default;

  static constexpr auto fields() {
    using U = UniformLengths;
    return std::make_tuple(field("distribution", &U::distribution, "how lengths are drawn").one_of("uniform"),
                           field("low", &U::low, "shortest length, as a part of max_seq_len", 0, 1),
                           field("high", &U::high, "longest length, as a part of max_seq_len", 0, 1),
                           field("batch", &U::batch, "number of sequences", 1, kMaxSeqLen),
                           field("seed", &U::seed, "seed of the lengths"));
  }
};

// Where the lengths of a batch come from when an instance is tuned, run or timed.
struct LengthSource {
  UniformLengths uniform;  // unless `list` has entries
  SharedIntegers list;     // given, or read from a file
};

// Names of files begin with that of an instance, and a file system bounds those.
inline constexpr size_t kLongestName = 100;

// One entry of "ops".
struct Instance {
  std::string name;
  OpSpecPtr spec;
  std::vector<Direction> directions;
  SharedIntegers max_seq_lens;  // ascending, at least one
  LengthSource lengths;
  int64_t num_targets = 0;   // targets of each sequence in generated inputs; 0 when the operator takes none
  int64_t num_contexts = 0;  // the same of contexts
  // For operators that take a max_delta_len: the rows of q of each sequence in generated inputs, one number for each in
  // turn. A single one where q has as many rows of every sequence.
  SharedIntegers delta_lens = {64};
  double alpha = 0;            // value of the launch argument of that name
  bool small_batches = false;  // launches of few tiles get a kernel of their own, tuned by itself (small_batch.h)
};

using InstancePtr = std::shared_ptr<const Instance>;

struct Config {
  std::optional<DeviceSpec> device;
  Tuning tuning;
  std::vector<Instance> instances;

  // kNotFound, naming the instances there are, when there is none of that name.
  Result<const Instance*> find(std::string_view name) const;
};

// A bare list is the "ops" of a config that has no more. Files it names are relative to `folder`. Failure:
// kInvalidConfig with a line for each mistake, "origin:line:column: " in front of it (mistakes.h).
Result<Config> parse_config(std::string_view text, const std::string& origin, const std::filesystem::path& folder);
Result<Config> load_config(const std::filesystem::path& path);
// The text of a config file. kInvalidConfig where the file is of another kind.
Result<std::string> read_config_file(const std::filesystem::path& path);

// One entry of "ops"; `path` is its JSON path. Has no spec, and what is right of the rest, where there are mistakes.
Instance parse_instance(const Json& json, const std::string& path, const std::filesystem::path& folder,
                        Mistakes& mistakes);
// The same for what programs have written: fails with the first mistake.
Result<Instance> parse_instance(const Json& json, const std::string& path, const std::filesystem::path& folder);

// The names that an entry of "ops" with that operator, one of operator_names(), may have besides the operator's
// parameters.
const std::vector<std::string_view>& instance_field_names(std::string_view op);
// All names that it may have; those of every operator for one that is none.
const std::vector<std::string>& entry_field_names(std::string_view op);
bool is_entry_field(std::string_view op, std::string_view name);

// The batch for one of the instance's max_seq_len: the same for the same instance, on every machine. Listed lengths
// that are longer are cut, as a model cuts its histories.
Lengths make_lengths(const Instance& instance, int64_t max_seq_len);

}  // namespace hstujit
