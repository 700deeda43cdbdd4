// Structs of callers of other versions.
#include "runtime/capi/boundary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <thread>

namespace hstujit::capi {
namespace {

// A struct as it was published first, and as later versions have it.
struct First {
  size_t size = sizeof(First);
  int64_t length = 0;
};
struct Later {
  size_t size = sizeof(Later);
  int64_t length = 0;
  int64_t added = 0;
  const char* text = nullptr;
};

// NVRTC dies where a thread rounds down, and estimates differ.
TEST(Guarded, RoundsToNearestAndLeavesTheCallersModeAsItWas) {
  for (const int mode : {FE_DOWNWARD, FE_TOWARDZERO, FE_UPWARD, FE_TONEAREST}) {
    ASSERT_EQ(std::fesetround(mode), 0);
    int inside = -1, of_thread = -1;
    guarded([&]() -> Status {
      inside = std::fegetround();
      std::thread([&] { of_thread = std::fegetround(); }).join();
      return {};
    });
    EXPECT_EQ(std::fegetround(), mode);
    EXPECT_EQ(inside, FE_TONEAREST);
    EXPECT_EQ(of_thread, FE_TONEAREST);
  }
  std::fesetround(FE_TONEAREST);
}

TEST(ReadStruct, AnOlderCallersIsFilledUpWithZeros) {
  // Memory behind the older struct in the caller's memory is not the library's to read.
  struct {
    First given;
    int64_t behind[2] = {-1, -1};
  } memory;
  memory.given.length = 7;
  const auto known = read_struct("s", reinterpret_cast<const Later*>(&memory.given), sizeof(First));
  ASSERT_TRUE(known.ok()) << known.status().message();
  EXPECT_EQ(known->length, 7);
  EXPECT_EQ(known->added, 0);
  EXPECT_EQ(known->text, nullptr);
}

TEST(ReadStruct, ANewerCallersIsCut) {
  Later given;
  given.length = 7;
  const auto known = read_struct("s", reinterpret_cast<const First*>(&given), sizeof(First));
  ASSERT_TRUE(known.ok()) << known.status().message();
  EXPECT_EQ(known->length, 7);
}

TEST(ReadStruct, ASizeBelowTheFirstIsRefused) {
  Later given;
  given.size = sizeof(First) - 1;
  EXPECT_EQ(read_struct("s", &given, sizeof(First)).status().message(),
            "s.size is 15; it must be 16 or more, set it with HSTUJIT_INIT");
}

}  // namespace
}  // namespace hstujit::capi
