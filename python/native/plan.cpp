#include "python/native/plan.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "python/native/failure.h"

namespace hstujit::torch {

namespace {

// Never 0. Lengths for which it is not are refused anyway.
std::uint64_t key_of(std::int64_t max_seq_len, std::int32_t device) {
  return static_cast<std::uint64_t>(max_seq_len) << 16 | (static_cast<std::uint64_t>(device + 2) & 0xffff);
}

bool is_plain(std::int64_t max_seq_len) { return max_seq_len >= 0 && max_seq_len < (std::int64_t{1} << 47); }

int place_of(const std::vector<std::string>& names, const char* name) {
  return static_cast<int>(std::ranges::find(names, name) - names.begin());
}

}  // namespace

bool PreparedOp::is_prepared(std::int64_t max_seq_len, std::int32_t device) {
  const std::uint64_t key = key_of(max_seq_len, device);
  if (!is_plain(max_seq_len)) return false;
  if (latest_.load(std::memory_order_acquire) == key) return true;
  const std::shared_lock lock(mutex_);
  if (!prepared_.contains(key)) return false;
  latest_.store(key, std::memory_order_release);
  return true;
}

void PreparedOp::add(std::int64_t max_seq_len, std::int32_t device) {
  if (!is_plain(max_seq_len)) return;
  const std::lock_guard lock(mutex_);
  if (prepared_.size() >= kMaxPrepared) prepared_.clear();
  prepared_.insert(key_of(max_seq_len, device));
  latest_.store(key_of(max_seq_len, device), std::memory_order_release);
}

Plan::Plan(const Operator& op, hstujit_call* call) : schema_outputs(op.outputs.size(), -1), call_(call) {
  int outputs = 0;
  auto declared = static_cast<int>(op.inputs.size());  // the next input that a text declares
  for (int at = 0; at < hstujit_call_argument_count(call); ++at) {
    auto described = HSTUJIT_INIT(hstujit_call_argument);
    check_status(op.name, hstujit_call_argument_at(call, at, &described));
    LaunchArgument argument{described.kind,     0, described.rank, described.dtype, 0, described.row_elements,
                            described.alignment};
    if (described.output == 1) {
      const auto place = static_cast<std::size_t>(place_of(op.outputs, described.name));
      (place < op.outputs.size() ? schema_outputs[place] : gradients.emplace_back()) = outputs;
      argument.dtype = torch_type(described.dtype);
      argument.source = -1 - outputs++;
    } else {
      argument.source = place_of(op.inputs, described.name);
      if (argument.source == static_cast<int>(op.inputs.size())) argument.source = declared++;
    }
    if (described.max_rows == 1) max_rows = argument.source;
    if (described.rank > kMaxRank || at >= kMaxArguments || outputs > kMaxOutputs)
      throw std::logic_error("a launch has more arguments, or one more axes, than this library has room for");
    arguments.push_back(argument);
  }
  for (int at = 0; at < hstujit_call_rows_count(call); ++at) {
    auto described = HSTUJIT_INIT(hstujit_call_rows);
    check_status(op.name, hstujit_call_rows_at(call, at, &described));
    if (described.keyword != nullptr)
      rows.push_back({place_of(op.rows, described.keyword), -1});
    else
      rows.push_back({-1, arguments[static_cast<std::size_t>(described.offsets)].source});
  }
}

Plan::~Plan() {
  for (auto& op : ops_) delete op.load();
  hstujit_call_destroy(call_.load());
  hstujit_call_destroy(replaced_.load());
}

void Plan::replace(hstujit_call* call) {
  hstujit_call* const before = call_.load();
  hstujit_call* none = nullptr;
  if (replaced_.compare_exchange_strong(none, before))
    call_.store(call, std::memory_order_release);
  else
    hstujit_call_destroy(call);  // another thread was first
}

PreparedOp& Plan::prepared(hstujit_op* op) {
  for (auto& place : ops_) {
    PreparedOp* known = place.load(std::memory_order_acquire);
    if (!known) {
      auto made = std::make_unique<PreparedOp>(op);
      if (place.compare_exchange_strong(known, made.get())) known = made.release();
    }
    if (known->op() == op) return *known;
  }
  throw std::logic_error("a call has more ops than this library has room for");
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
  std::vector<Plans::node_type> dropped;  // after the lock: a plan may be the last user of an op
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
