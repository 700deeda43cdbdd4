// Listing a folder on a disk that fails half-way.
#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "compiler/support/files.h"
#include "compiler/support/folder.h"

namespace {

int entries_left = -1;  // that readdir gives before it fails; -1: all

}  // namespace

// In place of the C library's, for this whole program.
extern "C" dirent* readdir(DIR* folder) {
  static auto* const next = reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  if (entries_left == 0) {
    errno = EIO;
    return nullptr;
  }
  if (entries_left > 0) --entries_left;
  return next(folder);
}

namespace hstujit {
namespace {

// A reader who took it for the whole would remove a cubin whose metadata is in the rest.
TEST(ListingTest, APartOfAListingIsNone) {
  const auto temporary = TempDir::create();
  ASSERT_TRUE(temporary.ok());
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(write_file_atomically(temporary->path() / name, "x").ok());
  const auto folder = Folder::open(temporary->path(), Trust::kAll);
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folder->names()->size(), 3u);
  for (const int entries : {0, 3}) {
    entries_left = entries;
    const auto names = folder->names();
    entries_left = -1;
    EXPECT_TRUE(is_system_failure(names.status())) << entries;
  }
}

}  // namespace
}  // namespace hstujit
