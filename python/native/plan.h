// Plans: everything that follows from the data types, sizes and parameters of a call, and where it is kept.
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

namespace hstujit::torch {

// An op of a call, with the lengths that it was prepared for.
class PreparedOp {
 public:
  explicit PreparedOp(hstujit_op* op) : op_(op) {}

  hstujit_op* op() const { return op_; }
  bool is_prepared(std::int64_t max_seq_len, std::int32_t device);
  void add(std::int64_t max_seq_len, std::int32_t device);

 private:
  static constexpr std::size_t kMaxPrepared = 4096;  // lengths that are remembered; preparing again is cheap

  hstujit_op* op_;  // the call's
  std::atomic<std::uint64_t> latest_{0};
  std::shared_mutex mutex_;
  std::unordered_set<std::uint64_t> prepared_;
};

// One argument of a launch, in its order.
struct LaunchArgument {
  hstujit_kind kind;
  int source;          // an input, or -1 - n: the output n
  int rank;            // of a tensor
  DLDataType type;     // of a tensor
  std::int32_t dtype;  // PyTorch's, of outputs
  int row_elements;    // outputs: rows begin at multiples of so many elements
  int alignment;       // of a tensor: bytes that its address and outer strides are multiples of
};

// A number of rows that sizes of outputs follow from.
struct RowSource {
  int rows;     // the keyword, of Operator::rows; -1: the last element of offsets
  int offsets;  // the input
};

// Holds what follows from the data types, sizes and parameters of a call.
class Plan {
 public:
  // Takes the call.
  Plan(const Operator& op, hstujit_call* call);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  hstujit_call* call() const { return call_.load(std::memory_order_acquire); }
  // Launches from now on are those of another call with the same signature, which it takes.
  void replace(hstujit_call* call);
  PreparedOp& prepared(hstujit_op* op);

  std::vector<LaunchArgument> arguments;
  std::vector<int> schema_outputs;  // of each output of the schema the one of the launch, -1: without elements
  std::vector<int> gradients;       // outputs of the launch for what a text declares, in its order
  std::vector<RowSource> rows;
  int max_rows = -1;  // the input that hstujit_prepare is for, -1: none

 private:
  static constexpr int kMaxOps = 16;  // alignments of two calls

  std::atomic<hstujit_call*> call_;
  std::atomic<hstujit_call*> replaced_{nullptr};         // launches may still run it
  std::array<std::atomic<PreparedOp*>, kMaxOps> ops_{};  // a prefix; entries are added and stay
};

// The plans of one operator, keep_plans() of them at most. A plan that was used since the table looked at it last stays
// when another one has to go. Any thread may use it; nothing of it is held while Python runs.
class PlanTable {
 public:
  using Key = std::vector<std::uint64_t>;

  // How many plans each table keeps from its next plan on, 1 or more.
  static void keep_plans(std::size_t most);

  std::shared_ptr<Plan> find(std::span<const std::uint64_t> key) const;
  // Keeps the first of the plans that were made for `key` since generation() said `generation`, and no plan of an
  // earlier generation.
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
