// The findings of tuning about one problem on one device: every candidate's time, every rejection, and the winner.
//
// A config's newest finding counts. A newer time ends its rejection. A newer permanent rejection ends all of its
// times, those of other sources and workloads, too: a kernel just found to be wrong may not win by a time of its past.
// So no record has both for one config, and one that has (of a library before this rule) is read as the rejection
// alone.
//
// The winner of a record is the one that its last run chose: a config whose time is of the source that would run on
// that day. Times of other sources stay, since another library may come back to them, but they compete in no run. Of a
// key without a length it is that of the last run but for those on few rows: a launch may have any number, and what
// many take counts.
//
// A winner is stored as parameters: it means the same whatever the order of a search space.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autotune_cache/records/batch_class.h"
#include "autotune_cache/records/recorded_config.h"
#include "compiler/support/status.h"

namespace hstujit {

// Raised when the meaning of a key field changes, so that old records are never found again.
inline constexpr int kTuningSchema = 2;

inline constexpr int64_t kMostRows = int64_t{1} << 40;  // of a workload; a record with more says nothing of them

// All that a look-up knows when it asks for a winner. `bucket` is the quantised max_seq_len: lookup and tuning quantise
// it by the same function. The lengths of a batch are not in it, since nobody knows them before the launch: they are
// the workload of a timing.
struct TuningKey {
  std::string op;
  std::string spec;  // key_text of compiler/spec/op_spec.h
  std::string direction;
  std::string device;  // as the driver names it
  std::string arch;
  int64_t sm_count = 0;
  int64_t bucket = 0;
  // Part of the key where they differ from these: a key that does not is as it was before they were added.
  BatchClass batch_class = BatchClass::kAny;
  bool deterministic = false;  // the winner is that of deterministic kernels

  bool operator==(const TuningKey&) const = default;
};

// 64 hexadecimal digits over the named fields.
std::string tuning_digest(const TuningKey& key);

// The kernel that a candidate was timed alternately with. Clocks drift by some percent from run to run, and both meet
// the same.
struct TimingBaseline {
  RecordedConfig config;      // none: unknown, as in records of libraries before this field
  std::string source_digest;  // as the candidate's
  double median_us = 0;       // alternately with the candidate

  bool operator==(const TimingBaseline&) const = default;
};

struct TimedCandidate {
  RecordedConfig config;
  std::string workload;  // names the batch that it was timed on; times of two workloads are never compared
  std::string
      source_digest;  // of the generated source that was timed and its compiler: the time holds as long as they do
  double median_us = 0;
  double spread_us = 0;  // half the distance between the quartiles, or whatever the tuner takes for noise
  TimingBaseline baseline = {};

  bool operator==(const TimedCandidate&) const = default;
};

// The reasons of rejections that say something about the moment and not about the source: such a candidate is tried
// again by the next run.
inline constexpr std::string_view kTransientReasons[] = {"load", "failed", "compile_killed", "compile_timeout"};

struct TuningRejection {
  RecordedConfig config;
  std::string source_digest;  // empty when it was rejected before a source was made
  std::string reason;         // short stable name: "spill", "shared_memory", "wrong_result", ...; see kTransientReasons
  std::string detail;         // the sentence with the figures

  bool operator==(const TuningRejection&) const = default;

  // Whether it says something about the source: every reason but kTransientReasons.
  bool is_permanent() const;
};

struct TuningRecord {
  TuningKey key;
  std::string workload;  // the one that decides: `winner` is the winner of its timings
  // Where the key has no length, so that a launch may have any number of rows: the most of a workload that has decided.
  // Else, and where they are not known, 0.
  int64_t rows = 0;
  RecordedConfig winner;     // none when no candidate has a time, or it is left to the merge
  RecordedConfig heuristic;  // the config that would run untuned; none when unknown
  std::vector<TimedCandidate> timed;
  std::vector<TuningRejection> rejected;
  std::map<std::string, std::string> environment;  // "nvrtc", "library", "date"

  bool operator==(const TuningRecord&) const = default;

  // The timings of `workload`, in the order of the list.
  std::vector<TimedCandidate> timings() const;
  // The timing of a config on a workload, whatever source it is of; null when it has none. Without one: the record's.
  const TimedCandidate* timing(const RecordedConfig& config, std::string_view on_workload) const;
  const TimedCandidate* timing(const RecordedConfig& config) const { return timing(config, workload); }
  // The factor of median_us and spread_us of a timing before they are compared: they become what they would have
  // been when the timing's baseline was timed last. Two timings of one baseline (config and source) are so
  // compared by their ratios to it. 1 when the baseline is unknown.
  double drift(const TimedCandidate& timing) const;
  // timings(), each multiplied by its drift().
  std::vector<TimedCandidate> comparable_timings() const;
  // The same when it is of that very source, so that it need not be timed again.
  const TimedCandidate* valid_timing(const RecordedConfig& config, std::string_view source_digest,
                                     std::string_view on_workload) const;
  // The rejection of a config that holds for that very source, so that it need not be tried again.
  const TuningRejection* valid_rejection(const RecordedConfig& config, std::string_view source_digest) const;
};

// Whether a timing competes.
using TimingFilter = std::function<bool(const TimedCandidate&)>;

// The config with the least median on the record's workload among those that `competes` lets in (none given: all), but
// the heuristic's unless the other is faster by more than the spread of both; both are compared after drift(). Equal
// medians: the first in the order of the list. None when nothing was timed.
RecordedConfig select_winner(const TuningRecord& record, const TimingFilter& competes = {});

// Everything that either knows; a config's newest finding counts, as said above. For a config that both timed on one
// workload, that is `newer`'s; a rejection for a transient reason ends no times. The workload is `newer`'s when it has
// one, unless `older`'s has more than four times its rows. The winner is that one's, whose run knew which sources are
// of today; when it has none, or none with a time on that workload, all times compete. The keys must be equal:
// kInvalidArgument otherwise.
// Leaves out as much as no reader would take: as many of the older findings as exceed the limits of a record
// (record_room.h). `left_out`, unless it is null, is their number.
Result<TuningRecord> merge_records(const TuningRecord& older, const TuningRecord& newer, size_t* left_out = nullptr);

// True when merging `part` into `whole` would change nothing that was measured.
bool contains(const TuningRecord& whole, const TuningRecord& part);

// A checked JSON file. kInvalidArgument when a config is no JSON object or a time is no positive number, and for more
// than parse_record takes.
Result<std::string> format_record(const TuningRecord& record);

// kIo with what is wrong when the text is damaged or belongs to another digest; kOutOfMemory.
Result<TuningRecord> parse_record(std::string_view text, std::string_view digest);

}  // namespace hstujit
