#include "python/native/plan.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace hstujit::torch {

AlignedOp::AlignedOp(hstujit_op* op, std::span<const std::int32_t> alignments, bool is_last)
    : op_(op), alignments_(alignments.begin(), alignments.end()), is_last_(is_last) {}

bool AlignedOp::can_read(const std::uint64_t* bits) const {
  if (is_last_) return true;
  for (std::size_t i = 0; i < alignments_.size(); ++i)
    if (bits[i] % static_cast<std::uint64_t>(alignments_[i]) != 0) return false;
  return true;
}

void AlignedOp::prepare(std::int32_t number, std::int64_t max_seq_len, std::int32_t device) {
  // Never 0. Other lengths than these are refused anyway.
  const bool is_plain = max_seq_len >= 0 && max_seq_len < (std::int64_t{1} << 47);
  const std::uint64_t key =
      static_cast<std::uint64_t>(max_seq_len) << 16 | (static_cast<std::uint64_t>(device + 2) & 0xffff);
  if (is_plain) {
    if (latest_.load(std::memory_order_acquire) == key) return;
    const std::shared_lock lock(mutex_);
    if (prepared_.contains(key)) {
      latest_.store(key, std::memory_order_release);
      return;
    }
  }
  if (device >= 0) check_callback(callbacks().capturing(max_seq_len));
  auto problem = HSTUJIT_INIT(hstujit_problem);
  problem.max_seq_len = max_seq_len;
  problem.device = device;
  check_status(number, hstujit_prepare(op_, &problem));
  if (!is_plain) return;
  const std::lock_guard lock(mutex_);
  if (prepared_.size() >= kMaxPrepared) prepared_.clear();
  prepared_.insert(key);
  latest_.store(key, std::memory_order_release);
}

Plan::~Plan() {
  for (auto& op : ops) delete op.load();
  if (owner >= 0) callbacks().release(owner);
}

std::size_t PlanTable::Hash::operator()(std::span<const std::uint64_t> words) const {
  std::uint64_t hash = words.size();
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

bool PlanTable::Equal::operator()(std::span<const std::uint64_t> one, std::span<const std::uint64_t> other) const {
  return std::ranges::equal(one, other);
}

std::atomic<std::size_t> PlanTable::most_{512};

void PlanTable::keep_plans(std::size_t most) { most_.store(most, std::memory_order_relaxed); }

std::shared_ptr<Plan> PlanTable::find(std::span<const std::uint64_t> key) const {
  const std::shared_lock lock(mutex_);
  const auto found = plans_.find(key);
  if (found == plans_.end()) return nullptr;
  const Kept& kept = found->second;
  if (!kept.is_used.load(std::memory_order_relaxed)) kept.is_used.store(true, std::memory_order_relaxed);
  return kept.plan;
}

PlanTable::Plans::node_type PlanTable::take_unused() {
  for (;;) {
    const Key* const key = order_.front();
    order_.pop_front();
    const auto found = plans_.find(*key);
    if (!found->second.is_used.exchange(false, std::memory_order_relaxed)) return plans_.extract(found);
    order_.push_back(key);
  }
}

std::shared_ptr<Plan> PlanTable::keep(Key key, std::shared_ptr<Plan> plan, std::uint64_t generation) {
  std::vector<Plans::node_type> dropped;  // after the lock: Python gives back what plans own
  const std::lock_guard lock(mutex_);
  if (generation != generation_) return plan;
  const std::size_t most = most_.load(std::memory_order_relaxed);
  const auto [place, is_new] = plans_.try_emplace(std::move(key));
  if (!is_new) return place->second.plan;
  place->second.plan = plan;
  while (plans_.size() > most) dropped.push_back(take_unused());
  order_.push_back(&place->first);
  return plan;
}

std::uint64_t PlanTable::generation() const {
  const std::shared_lock lock(mutex_);
  return generation_;
}

void PlanTable::forget() {
  decltype(plans_) dropped;
  const std::lock_guard lock(mutex_);
  ++generation_;
  plans_.swap(dropped);
  order_.clear();
}

}  // namespace hstujit::torch
