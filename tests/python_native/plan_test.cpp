#include "python/native/plan.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/python_native/fake_functions.h"

namespace hstujit::torch {
namespace {

std::shared_ptr<Plan> plan_of(std::int64_t owner) {
  auto plan = std::make_shared<Plan>();
  plan->owner = owner;
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
  EXPECT_EQ(test::released().count(3), 1u);
}

TEST(PlanTable, IsBoundedAndGivesBackWhatItDrops) {
  PlanTable table;
  constexpr std::int64_t kFirst = 1000, kCount = 5000;
  for (std::int64_t owner = kFirst; owner < kFirst + kCount; ++owner)
    table.keep({static_cast<std::uint64_t>(owner)}, plan_of(owner), table.generation());
  std::int64_t kept = 0;
  for (std::int64_t owner = kFirst; owner < kFirst + kCount; ++owner) {
    const PlanTable::Key key = {static_cast<std::uint64_t>(owner)};
    const auto plan = table.find(key);
    kept += plan != nullptr;
    EXPECT_EQ(test::released().count(owner), plan ? 0u : 1u) << owner;
    if (plan) {
      EXPECT_EQ(plan->owner, owner);
    }
  }
  EXPECT_EQ(kept, 512);
}

TEST(PlanTable, APlanThatIsUsedStaysWhenOthersGo) {
  PlanTable::keep_plans(8);
  PlanTable table;
  const PlanTable::Key used = {1};
  const auto plan = table.keep(used, plan_of(10000), table.generation());
  std::int64_t kept = 0;
  for (std::uint64_t i = 2; i <= 100; ++i) {
    table.keep({i}, plan_of(static_cast<std::int64_t>(10000 + i)), table.generation());
    EXPECT_EQ(table.find(used), plan) << i;
  }
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const PlanTable::Key key = {i};
    kept += table.find(key) != nullptr;
    EXPECT_EQ(test::released().count(static_cast<std::int64_t>(10000 + i)), table.find(key) ? 0u : 1u) << i;
  }
  EXPECT_EQ(kept, 8);
  PlanTable::keep_plans(512);
}

TEST(PlanTable, APlanOutlivesItsPlaceWhileACallHasIt) {
  PlanTable::keep_plans(1);
  PlanTable table;
  auto plan = table.keep({1}, plan_of(20001), table.generation());
  table.keep({2}, plan_of(20002), table.generation());
  const PlanTable::Key key = {1};
  EXPECT_EQ(table.find(key), nullptr);
  EXPECT_EQ(test::released().count(20001), 0u);
  plan = nullptr;
  EXPECT_EQ(test::released().count(20001), 1u);
  PlanTable::keep_plans(512);
}

TEST(PlanTable, WhatWasMadeForAnotherContextIsUsedOnceAndNotKept) {
  PlanTable table;
  const std::uint64_t before = table.generation();
  const auto old = table.keep({1}, plan_of(4), before);
  table.forget();
  const PlanTable::Key key = {1};
  EXPECT_EQ(table.find(key), nullptr);
  EXPECT_EQ(test::released().count(4), 0u);  // a launch may be using it
  const auto late = table.keep({1}, plan_of(5), before);
  EXPECT_EQ(late->owner, 5);
  EXPECT_EQ(table.find(key), nullptr);
  const auto now = table.keep({1}, plan_of(6), table.generation());
  EXPECT_EQ(table.find(key), now);
}

TEST(PlanTable, ManyThreads) {
  PlanTable::keep_plans(16);  // so that plans go while they are used
  PlanTable table;
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    threads.emplace_back([&table, seed] {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        const PlanTable::Key key = {i * (seed + 1) % 97};
        auto plan = table.find(key);
        if (!plan) plan = table.keep(key, plan_of(static_cast<std::int64_t>(100000 + key[0])), table.generation());
        ASSERT_EQ(plan->owner, static_cast<std::int64_t>(100000 + key[0]));
        if (i % 100 == 0) table.forget();
      }
    });
  for (std::thread& thread : threads) thread.join();
  PlanTable::keep_plans(512);
}

TEST(AlignedOp, ReadsTensorsOfItsAlignments) {
  const std::int32_t alignments[] = {16, 8};
  const std::uint64_t fits[] = {32, 8}, first_does_not[] = {8, 8}, second_does_not[] = {16, 4};
  const AlignedOp op(nullptr, alignments, false), last(nullptr, alignments, true);
  EXPECT_TRUE(op.can_read(fits));
  EXPECT_FALSE(op.can_read(first_does_not));
  EXPECT_FALSE(op.can_read(second_does_not));
  EXPECT_TRUE(last.can_read(second_does_not));  // and the library says what it does not like
}

TEST(AlignedOp, ALengthThatWasRefusedIsAskedForAgain) {
  hstujit_context* context = nullptr;
  hstujit_op* op = nullptr;
  auto options = HSTUJIT_INIT(hstujit_context_options);
  ASSERT_EQ(hstujit_context_create(&options, &context), HSTUJIT_OK);
  const char* json = R"({"op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64})";
  ASSERT_EQ(hstujit_op_create(context, json, HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, &op), HSTUJIT_OK);
  static int asked = 0;
  test::fake_callbacks().capturing = [](std::int64_t) { return ++asked, 0; };
  AlignedOp aligned(op, {}, true);
  // No machine has this device.
  EXPECT_THROW(aligned.prepare(0, 64, 4000), std::runtime_error);
  EXPECT_THROW(aligned.prepare(0, 64, 4000), std::runtime_error);
  EXPECT_EQ(asked, 2);
  test::fake_callbacks().capturing = [](std::int64_t) { return 1; };  // no kernel may be compiled now
  EXPECT_THROW(aligned.prepare(0, 64, 4000), std::runtime_error);
  hstujit_op_destroy(op);
  hstujit_context_destroy(context);
}

}  // namespace
}  // namespace hstujit::torch
