// Plans: everything that follows from the data types, sizes and parameters of a call, and where it is kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "hstujit/hstujit.h"
#include "python/native/arguments.h"

namespace hstujit::torch {

// One argument of a launch, in its order.
struct LaunchArgument {
  hstujit_call_argument described;
  int source;  // an argument of the call, or -1 - n: the output n
};

// A number of rows that sizes of outputs follow from.
struct RowSource {
  int source;       // an argument of the call
  bool is_offsets;  // the number is the last element of that, and else the value itself
};

// Holds what follows from the data types, sizes and parameters of a call.
class Plan {
 public:
  Plan(const Operator& op, OwnedCall call);

  hstujit_call* call() const { return call_.load(std::memory_order_acquire); }
  // Launches from now on are those of another call with the same signature.
  void replace(OwnedCall call);

  std::vector<LaunchArgument> arguments;
  std::vector<int> results;  // of each output of the operator the one of the launch, -1: without elements
  std::vector<RowSource> rows;
  int max_rows = -1;  // the argument that hstujit_prepare is for, -1: none

 private:
  std::mutex mutex_;
  OwnedCall first_, second_;  // launches may still run the first
  std::atomic<hstujit_call*> call_;
};

// The plans of one operator, `most` of them. The one that was not used for the longest time goes first.
// Any thread may use it; nothing of it is held while Python runs.
class PlanTable {
 public:
  using Key = std::vector<std::uint64_t>;

  static inline std::atomic<std::size_t> most{512};  // that each table keeps from its next plan on, 1 or more

  std::shared_ptr<Plan> find(const Key& key) const;
  // Keeps the first of the plans that were made for `key` since generation() said `generation`, and no plan of an
  // earlier generation.
  std::shared_ptr<Plan> keep(Key key, std::shared_ptr<Plan> plan, std::uint64_t generation);
  std::uint64_t generation() const { return generation_; }
  void forget();

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Kept {
    std::shared_ptr<Plan> plan;
    mutable std::atomic<std::uint64_t> used{0};  // how many plans had been kept by then
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, Kept, Hash> plans_;
  std::uint64_t kept_ = 0;
  std::atomic<std::uint64_t> generation_ = 0;
};

}  // namespace hstujit::torch
