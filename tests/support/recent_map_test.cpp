#include "compiler/support/recent_map.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace hstujit {
namespace {

TEST(RecentMap, ForgetsTheEntryThatWasUsedLeastRecently) {
  RecentMap<std::string, int> map(2);
  map.put("a", 1);
  map.put("b", 2);
  ASSERT_NE(map.find("a"), nullptr);
  map.put("c", 3);
  EXPECT_EQ(map.find("b"), nullptr);
  ASSERT_NE(map.find("a"), nullptr);
  EXPECT_EQ(*map.find("a"), 1);
  EXPECT_EQ(*map.find("c"), 3);
  EXPECT_EQ(map.size(), 2u);
}

TEST(RecentMap, AValueTakesThePlaceOfAnEarlierOneOfItsKey) {
  RecentMap<std::string, int> map(2);
  map.put("a", 1);
  map.put("b", 2);
  map.put("a", 3);
  EXPECT_EQ(map.size(), 2u);
  map.put("c", 4);
  EXPECT_EQ(*map.find("a"), 3);
  EXPECT_EQ(map.find("b"), nullptr);
}

TEST(RecentMap, GivesBackTheValuesThatItForgets) {
  RecentMap<int, std::shared_ptr<int>> map(3);
  std::weak_ptr<int> first, second;
  for (int i = 0; i < 4; ++i) {
    auto value = std::make_shared<int>(i);
    if (i == 0) first = value;
    if (i == 1) second = value;
    map.put(i, std::move(value));
  }
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
  map.erase(1);
  EXPECT_TRUE(second.expired());
  map.erase(1);
  EXPECT_EQ(map.size(), 2u);
}

}  // namespace
}  // namespace hstujit
