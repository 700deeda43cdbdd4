// Which directories a cache consists of.
#include "autotune_cache/store/cache_directories.h"

#include <gmock/gmock.h>

#include "cache_fixture.h"

namespace hstujit {
namespace {

using CacheDirectoriesTest = CacheTest;

TEST_F(CacheDirectoriesTest, ADirectoryThatIsNamedTwiceIsOneLayer) {
  for (const char* name : {"a", "b"}) std::filesystem::create_directories(path(name));
  const CacheDirectories directories = {
      .user = path("a"), .read_only = {path("b"), path("a"), path("b") + "/", path("a") + "/../b", "/nowhere"}};
  EXPECT_THAT(directories.in_order(), ::testing::ElementsAre(path("a"), path("b"), "/nowhere"));
}

// A process that goes to another folder keeps its caches.
TEST_F(CacheDirectoriesTest, RelativeDirectoriesAreThoseOfTheFolderThatWasCurrent) {
  CacheDirectories directories = {.user = "own", .read_only = {"/shared", "team"}};
  directories.make_absolute();
  const std::string here = std::filesystem::current_path();
  EXPECT_EQ(directories.user, here + "/own");
  EXPECT_THAT(directories.read_only, ::testing::ElementsAre("/shared", here + "/team"));
  CacheDirectories none;
  none.make_absolute();
  EXPECT_EQ(none.user, "");
}

}  // namespace
}  // namespace hstujit
