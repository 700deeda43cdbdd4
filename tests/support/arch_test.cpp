#include "compiler/support/arch.h"

#include <gtest/gtest.h>

namespace hstujit {
namespace {

TEST(ArchNumber, IsThatOfTheName) {
  EXPECT_EQ(arch_number("sm_80"), 80);
  EXPECT_EQ(arch_number("sm_90a"), 90);
  EXPECT_EQ(arch_number("sm_100f"), 100);
  for (const char* text : {"", "90a", "sm_", "sm_9", "sm_90x", "sm_90aa", "sm_-90", "sm_ 90", "sm_90 ", "SM_90",
                           "compute_90", "sm_99999999999", "sm_090a", "sm_00"}) {
    EXPECT_EQ(arch_number(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace hstujit
