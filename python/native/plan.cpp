#include "python/native/plan.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "python/native/context.h"

namespace hstujit::torch {

Plan::Plan(const Operator& op, OwnedCall call)
    : results(op.outputs.size(), -1), first_(std::move(call)), call_(first_.get()) {
  int outputs = 0;
  auto declared = static_cast<int>(op.slots.size());  // the next argument that a text declares
  for (int at = 0; at < hstujit_call_argument_count(first_.get()); ++at) {
    LaunchArgument argument{HSTUJIT_INIT(hstujit_call_argument), 0};
    const hstujit_call_argument& described = argument.described;
    check_status(op.name, hstujit_call_argument_at(first_.get(), at, &argument.described));
    if (described.output == 1) {
      const auto place = std::ranges::find(op.outputs, described.name) - op.outputs.begin();
      // A gradient of what a text declares stands behind those that every call has.
      if (place == std::ssize(op.outputs)) results.push_back(outputs);
      results[place < std::ssize(op.outputs) ? place : results.size() - 1] = outputs;
      argument.source = -1 - outputs++;
    } else {
      argument.source = op.slot_of(described.name);
      if (argument.source == static_cast<int>(op.slots.size())) argument.source = declared++;
    }
    if (described.max_rows == 1) max_rows = argument.source;
    if (described.rank > kMaxRank || at >= kMaxArguments || outputs > kMaxOutputs)
      throw std::logic_error("a launch has more arguments, or one of them has more axes, than this library supports");
    arguments.push_back(argument);
  }
  for (int at = 0; at < hstujit_call_rows_count(first_.get()); ++at) {
    auto described = HSTUJIT_INIT(hstujit_call_rows);
    check_status(op.name, hstujit_call_rows_at(first_.get(), at, &described));
    if (described.keyword != nullptr)
      rows.push_back({op.slot_of(described.keyword), false});
    else
      rows.push_back({arguments[static_cast<std::size_t>(described.offsets)].source, true});
  }
}

void Plan::replace(OwnedCall call) {
  const std::lock_guard lock(mutex_);
  if (second_) return;  // another thread was first
  second_ = std::move(call);
  call_.store(second_.get(), std::memory_order_release);
}

std::size_t PlanTable::Hash::operator()(const Key& key) const {
  std::uint64_t hash = key.size();
  for (const std::uint64_t word : key) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

std::shared_ptr<Plan> PlanTable::find(const Key& key) const {
  const std::shared_lock lock(mutex_);
  const auto found = plans_.find(key);
  if (found == plans_.end()) return nullptr;
  const Kept& kept = found->second;
  if (kept.used.load(std::memory_order_relaxed) != kept_) kept.used.store(kept_, std::memory_order_relaxed);
  return kept.plan;
}

std::shared_ptr<Plan> PlanTable::keep(Key key, std::shared_ptr<Plan> plan, std::uint64_t generation) {
  std::vector<decltype(plans_)::node_type> dropped;  // after the lock: a plan may be the last user of an op
  const std::lock_guard lock(mutex_);
  if (generation != generation_) return plan;
  const auto [place, is_new] = plans_.try_emplace(std::move(key));
  if (!is_new) return place->second.plan;
  place->second.plan = plan;
  place->second.used = ++kept_;
  while (plans_.size() > most) {
    dropped.push_back(plans_.extract(std::ranges::min_element(
        plans_, {}, [](const auto& entry) { return entry.second.used.load(std::memory_order_relaxed); })));
  }
  return plan;
}

void PlanTable::forget() {
  decltype(plans_) dropped;
  const std::lock_guard lock(mutex_);
  ++generation_;
  plans_.swap(dropped);
}

}  // namespace hstujit::torch
