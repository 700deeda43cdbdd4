#include "python/native/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

namespace hstujit::torch {
namespace {

// Numbers of plans that are no more.
struct Released {
  std::mutex mutex;
  std::multiset<int> numbers;
  std::size_t count(int number) {
    const std::lock_guard lock(mutex);
    return numbers.count(number);
  }
};
Released& released() {
  static Released numbers;
  return numbers;
}

// A plan without a call, whose max_rows is its number.
std::shared_ptr<Plan> plan_of(int number) {
  static const Operator op{};
  std::shared_ptr<Plan> plan(new Plan(op, nullptr), [number](Plan* gone) {
    delete gone;
    const std::lock_guard lock(released().mutex);
    released().numbers.insert(number);
  });
  plan->max_rows = number;
  return plan;
}

TEST(PlanTable, FindsThePlanOfTheSameWordsAlone) {
  PlanTable table;
  const auto plan = table.keep({1, 2, 3}, plan_of(1), table.generation());
  const PlanTable::Key same = {1, 2, 3};
  EXPECT_EQ(table.find(same), plan);
  for (const PlanTable::Key& other : {PlanTable::Key{1, 2}, {1, 2, 3, 0}, {1, 2, 4}, {3, 2, 1}, {}})
    EXPECT_EQ(table.find(other), nullptr);
}

TEST(PlanTable, TheFirstPlanOfAKeyStays) {
  PlanTable table;
  const auto first = table.keep({7}, plan_of(2), table.generation());
  EXPECT_EQ(table.keep({7}, plan_of(3), table.generation()), first);
  EXPECT_EQ(released().count(3), 1u);
}

TEST(PlanTable, IsBoundedAndGivesBackWhatItDrops) {
  PlanTable table;
  constexpr int kFirst = 1000, kCount = 5000;
  for (int owner = kFirst; owner < kFirst + kCount; ++owner)
    table.keep({static_cast<std::uint64_t>(owner)}, plan_of(owner), table.generation());
  int kept = 0;
  for (int owner = kFirst; owner < kFirst + kCount; ++owner) {
    const PlanTable::Key key = {static_cast<std::uint64_t>(owner)};
    const auto plan = table.find(key);
    kept += plan != nullptr;
    EXPECT_EQ(released().count(owner), plan ? 0u : 1u) << owner;
    if (plan) {
      EXPECT_EQ(plan->max_rows, owner);
    }
  }
  EXPECT_EQ(kept, 512);
}

TEST(PlanTable, APlanThatIsUsedStaysWhenOthersGo) {
  PlanTable::most = 8;
  PlanTable table;
  const PlanTable::Key used = {1};
  const auto plan = table.keep(used, plan_of(10000), table.generation());
  int kept = 0;
  for (std::uint64_t i = 2; i <= 100; ++i) {
    table.keep({i}, plan_of(static_cast<int>(10000 + i)), table.generation());
    EXPECT_EQ(table.find(used), plan) << i;
  }
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const PlanTable::Key key = {i};
    kept += table.find(key) != nullptr;
    EXPECT_EQ(released().count(static_cast<int>(10000 + i)), table.find(key) ? 0u : 1u) << i;
  }
  EXPECT_EQ(kept, 8);
  PlanTable::most = 512;
}

TEST(PlanTable, APlanOutlivesItsPlaceWhileACallHasIt) {
  PlanTable::most = 1;
  PlanTable table;
  auto plan = table.keep({1}, plan_of(20001), table.generation());
  table.keep({2}, plan_of(20002), table.generation());
  const PlanTable::Key key = {1};
  EXPECT_EQ(table.find(key), nullptr);
  EXPECT_EQ(released().count(20001), 0u);
  plan = nullptr;
  EXPECT_EQ(released().count(20001), 1u);
  PlanTable::most = 512;
}

TEST(PlanTable, WhatWasMadeForAnotherContextIsUsedOnceAndNotKept) {
  PlanTable table;
  const std::uint64_t before = table.generation();
  const auto old = table.keep({1}, plan_of(4), before);
  table.forget();
  const PlanTable::Key key = {1};
  EXPECT_EQ(table.find(key), nullptr);
  EXPECT_EQ(released().count(4), 0u);  // a launch may be using it
  const auto late = table.keep({1}, plan_of(5), before);
  EXPECT_EQ(late->max_rows, 5);
  EXPECT_EQ(table.find(key), nullptr);
  const auto now = table.keep({1}, plan_of(6), table.generation());
  EXPECT_EQ(table.find(key), now);
}

TEST(PlanTable, ManyThreads) {
  PlanTable::most = 16;  // so that plans go while they are used
  PlanTable table;
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    threads.emplace_back([&table, seed] {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        const PlanTable::Key key = {i * (seed + 1) % 97};
        auto plan = table.find(key);
        if (!plan) plan = table.keep(key, plan_of(static_cast<int>(100000 + key[0])), table.generation());
        ASSERT_EQ(plan->max_rows, static_cast<int>(100000 + key[0]));
        if (i % 100 == 0) table.forget();
      }
    });
  for (std::thread& thread : threads) thread.join();
  PlanTable::most = 512;
}

TEST(Plan, FollowsTheCall) {
  std::vector<Operator> all = all_operators();
  const Operator& op = *std::ranges::find(all, "dense_to_jagged", &Operator::name);
  hstujit_context* context = nullptr;
  ASSERT_EQ(hstujit_context_create(nullptr, &context), HSTUJIT_OK);
  std::int64_t rows[] = {6, 8}, places[] = {3};
  DLTensor dense = {nullptr, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, rows, nullptr, 0};
  DLTensor offsets = {nullptr, {kDLCPU, 0}, 1, {kDLInt, 64, 1}, places, nullptr, 0};
  hstujit_given given[] = {{"dense", HSTUJIT_GIVEN_TENSOR, {}, nullptr},
                           {"seq_offsets", HSTUJIT_GIVEN_TENSOR, {}, nullptr},
                           {"max_len", HSTUJIT_GIVEN_INTEGER, {}, nullptr}};
  given[0].value.tensor = &dense;
  given[1].value.tensor = &offsets;
  auto options = HSTUJIT_INIT(hstujit_op_options);
  options.backend = HSTUJIT_BACKEND_HOST;
  hstujit_call* call = nullptr;
  ASSERT_EQ(hstujit_call_create(context, "dense_to_jagged", &options, given, 3, &call), HSTUJIT_OK)
      << hstujit_last_error();
  const Plan plan(op, OwnedCall(call));
  ASSERT_EQ(plan.arguments.size(), 4u);
  EXPECT_EQ(plan.results, std::vector<int>{0});
  ASSERT_EQ(plan.rows.size(), 1u);
  EXPECT_TRUE(plan.rows[0].is_offsets);
  EXPECT_EQ(op.slots[static_cast<std::size_t>(plan.rows[0].source)].name, "seq_offsets");
  hstujit_context_destroy(context);
}

TEST(Operators, HaveSchemasOfPyTorch) {
  std::vector<Operator> all = all_operators();
  const auto schema = [&](std::string_view name) { return std::ranges::find(all, name, &Operator::name)->schema; };
  EXPECT_EQ(schema("silu"), "silu(Tensor x) -> Tensor");
  EXPECT_EQ(
      schema("rms_norm"),
      "rms_norm(Tensor x, Tensor? weight=None, float eps=1e-05, *, bool silu=False, bool residual=False) -> Tensor");
  EXPECT_EQ(schema("split_2d_jagged").substr(0, 60), "split_2d_jagged(Tensor values, Tensor? offsets_left=None, Te");
  for (const Operator& op : all) {
    EXPECT_TRUE(op.slots[static_cast<std::size_t>(op.first)].is_required) << op.name;
    EXPECT_EQ(op.schema.substr(0, op.name.size() + 1), op.name + "(");
  }
}

}  // namespace
}  // namespace hstujit::torch
