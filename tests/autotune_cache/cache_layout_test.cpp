// Which directories a cache consists of.
#include "autotune_cache/cache_layout.h"

#include <gmock/gmock.h>

#include "cache_fixture.h"

namespace hstujit {
namespace {

using CacheLayoutTest = CacheTest;

TEST_F(CacheLayoutTest, ADirectoryThatIsNamedTwiceIsOneLayer) {
  for (const char* name : {"a", "b"}) std::filesystem::create_directories(path(name));
  const CacheDirectories directories = {
      .user = path("a"), .read_only = {path("b"), path("a"), path("b") + "/", path("a") + "/../b", "/nowhere"}};
  EXPECT_THAT(directories.in_order(), ::testing::ElementsAre(path("a"), path("b"), "/nowhere"));
}

}  // namespace
}  // namespace hstujit
