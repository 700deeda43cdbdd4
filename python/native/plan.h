// What follows from the data types, sizes and parameters of a call, and where it is kept.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hstujit/hstujit.h"
#include "python/native/arguments.h"
#include "python/native/interface.h"

namespace hstujit::torch {

const hstujit_torch_callbacks& callbacks();

// Throws with what a callback said where it failed.
void check_callback(std::int32_t failed);
// Throws with the sentence of a status of the library, about the operator `op`.
void check_status(std::int32_t op, hstujit_status status);

// An op of an instance, for tensors of one alignment.
class AlignedOp {
 public:
  AlignedOp(hstujit_op* op, std::span<const std::int32_t> alignments, bool is_last);

  hstujit_op* op() const { return op_; }
  bool can_read(const std::uint64_t* bits) const;
  // `number`: the operator's, for an error.
  void prepare(std::int32_t number, std::int64_t max_seq_len, std::int32_t device);

 private:
  static constexpr std::size_t kMaxPrepared = 4096;  // lengths that are remembered; preparing again is cheap

  hstujit_op* op_;  // kept by the owner of the plan
  std::vector<std::int32_t> alignments_;
  bool is_last_;  // there is none of a smaller alignment: the library says what it does not like
  std::atomic<std::uint64_t> latest_{0};
  std::shared_mutex mutex_;
  std::unordered_set<std::uint64_t> prepared_;
};

struct Plan {
  Plan() = default;
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  static constexpr int kMaxAlignments = 8;

  std::int64_t owner = -1;
  std::vector<hstujit_torch_argument> arguments;
  std::vector<std::int32_t> schema_outputs;
  std::vector<std::int64_t> program;
  std::int32_t max_rows = -1;
  bool needs_handles = false;  // a size of an output is an element of a tensor
  // A prefix of all alignments there are, from the largest on. Entries are added and stay.
  std::array<std::atomic<AlignedOp*>, kMaxAlignments> ops{};
};

// The plans of one operator, keep_plans() of them at most. A plan that was used since the table looked at it last stays
// when another one has to go. Any thread may use it; nothing of it is held while Python runs.
class PlanTable {
 public:
  using Key = std::vector<std::uint64_t>;

  // How many plans each table keeps from its next plan on, 1 or more.
  static void keep_plans(std::size_t most);

  std::shared_ptr<Plan> find(std::span<const std::uint64_t> key) const;
  // Of the plans that were made for `key` since generation() said `generation`, the first one stays. One that is of an
  // earlier generation is not kept.
  std::shared_ptr<Plan> keep(Key key, std::shared_ptr<Plan> plan, std::uint64_t generation);
  std::uint64_t generation() const;
  void forget();

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::span<const std::uint64_t> words) const;
    std::size_t operator()(const Key& key) const { return (*this)(std::span<const std::uint64_t>(key)); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(std::span<const std::uint64_t> one, std::span<const std::uint64_t> other) const;
  };

  struct Kept {
    std::shared_ptr<Plan> plan;
    mutable std::atomic<bool> is_used{false};  // found since it was kept, or looked at
  };
  using Plans = std::unordered_map<Key, Kept, Hash, Equal>;

  // Takes out one plan: the first in order_ that was not used since it was looked at here.
  Plans::node_type take_unused();

  static std::atomic<std::size_t> most_;

  mutable std::shared_mutex mutex_;
  Plans plans_;
  std::deque<const Key*> order_;  // keys of plans_, in the order of the next looks
  std::uint64_t generation_ = 0;
};

}  // namespace hstujit::torch
