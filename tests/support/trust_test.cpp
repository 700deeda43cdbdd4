#include "compiler/support/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "compiler/support/files.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string distrust_of(uid_t owner, mode_t mode) {
  struct stat info = {};
  info.st_uid = owner;
  info.st_mode = S_IFREG | mode;
  return distrust(info);
}

TEST(Trust, IsOfRootAndOfTheUserAndOfTheirGroups) {
  for (const uid_t owner : {uid_t{0}, ::geteuid()}) {
    for (const mode_t mode : {0600, 0644, 0664, 0755, 0775}) EXPECT_EQ(distrust_of(owner, mode), "");
    EXPECT_THAT(distrust_of(owner, 0602), HasSubstr("anybody may write it (mode 602)"));
    EXPECT_THAT(distrust_of(owner, 01777), HasSubstr("anybody may write it (mode 1777)"));
  }
  EXPECT_THAT(distrust_of(::geteuid() + 1, 0600), HasSubstr("it belongs to the user"));
}

TEST(Trust, SaysWhatHelps) {
  const std::string of_another = distrust_of(::geteuid() + 1, 0600);
  EXPECT_THAT(of_another, HasSubstr("give it to one of them with chown, or set HSTUJIT_TRUST_CACHE=1"));
  const std::string of_anybody = distrust_of(::geteuid(), 0602);
  EXPECT_THAT(of_anybody, HasSubstr("take that away with chmod -R o-w, or set HSTUJIT_TRUST_CACHE=1"));
  EXPECT_TRUE(says_distrust(of_another));
  EXPECT_TRUE(says_distrust("cannot use folder \"/c/v1\": " + of_anybody));
  EXPECT_FALSE(says_distrust("cannot open folder \"/c/v1\": Permission denied"));
  EXPECT_FALSE(says_distrust(""));
  EXPECT_EQ(without_remedy("cannot use folder \"/c; d/v1\": " + of_anybody),
            "cannot use folder \"/c; d/v1\": anybody may write it (mode 602)");
  EXPECT_EQ(without_remedy("cannot open folder; it is gone"), "cannot open folder; it is gone");
}

TEST(Trust, OfAPlaceIsThatOfTheFoldersAbove) {
  const auto temporary = TempDir::create();
  ASSERT_TRUE(temporary.ok());
  const fs::path open = temporary->path() / "open";
  const fs::path place = open / "between" / "cache";
  ASSERT_TRUE(make_directories(place).ok());
  EXPECT_EQ(distrust_of_place(place), "") << "the folder for temporary files itself has the sticky bit, or one owner";
  fs::permissions(open, fs::perms(0777));
  EXPECT_THAT(distrust_of_place(place),
              HasSubstr("everybody may write the folder \"" + open.native() + "\" (mode 777)"));
  EXPECT_TRUE(says_distrust(distrust_of_place(place)));
  fs::permissions(open, fs::perms(01777));
  EXPECT_EQ(distrust_of_place(place), "") << "the sticky bit";
  fs::permissions(open, fs::perms(0775));
  EXPECT_EQ(distrust_of_place(place), "") << "a group";

  // A link is as safe as the folder that it lies in, and as the place that it leads to.
  const fs::path other = temporary->path() / "other";
  ASSERT_TRUE(fs::create_directory(other));
  fs::create_symlink(place, other / "link");
  EXPECT_EQ(distrust_of_place(other / "link"), "");
  fs::permissions(other, fs::perms(0777));
  EXPECT_THAT(distrust_of_place(other / "link"), HasSubstr(other.native()));
  fs::permissions(other, fs::perms(0755));
  fs::permissions(open, fs::perms(0777));
  EXPECT_THAT(distrust_of_place(other / "link"), HasSubstr(open.native()));
}

TEST(Trust, OfAPlaceThatIsStillToBeMade) {
  const auto temporary = TempDir::create();
  ASSERT_TRUE(temporary.ok());
  const fs::path open = temporary->path() / "open", safe = temporary->path() / "safe";
  for (const fs::path& folder : {open, safe}) ASSERT_TRUE(fs::create_directory(folder));
  fs::permissions(open, fs::perms(0777));
  fs::create_symlink(open / "new", safe / "link");
  EXPECT_EQ(distrust_of_place(safe / "new" / "cache"), "");
  for (const fs::path& place :
       {open / "cache", open / "new" / "cache", safe / "new" / ".." / ".." / "open" / "cache", safe / "link" / "cache"})
    EXPECT_THAT(distrust_of_place(place), HasSubstr("everybody may write the folder \"" + open.native() + "\""))
        << place;
}

// A link in a safe folder leads through one that everybody may write, and from there to a safe place.
TEST(Trust, OfAPlaceIsThatOfEveryFolderOnTheWay) {
  const auto temporary = TempDir::create();
  ASSERT_TRUE(temporary.ok());
  const fs::path root = temporary->path();
  for (const char* name : {"safe", "open", "target"}) ASSERT_TRUE(fs::create_directory(root / name));
  fs::create_symlink("../target", root / "open" / "link");
  fs::create_symlink("../open/link", root / "safe" / "cache");
  fs::create_symlink(root / "safe" / "." / "cache", root / "safe" / "twice");
  for (const char* name : {"cache", "twice"}) {
    fs::permissions(root / "open", fs::perms(0755));
    EXPECT_EQ(distrust_of_place(root / "safe" / name), "");
    fs::permissions(root / "open", fs::perms(0777));
    EXPECT_THAT(distrust_of_place(root / "safe" / name), HasSubstr((root / "open").native() + "\" (mode 777)"));
    EXPECT_THAT(distrust_of_place(root / "safe" / name / "inner"), HasSubstr((root / "open").native()));
  }
  EXPECT_EQ(distrust_of_place(root / "safe" / ".." / "target"), "");
  fs::create_symlink("circle", root / "safe" / "circle");
  EXPECT_EQ(distrust_of_place(root / "safe" / "circle"), "") << "nobody can open it";
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a link away";
  fs::permissions(root / "open", fs::perms(0755));
  ASSERT_EQ(::lchown((root / "open" / "link").c_str(), 65534, 65534), 0);
  EXPECT_THAT(distrust_of_place(root / "safe" / "cache"), HasSubstr("belongs to the user 65534"));
  EXPECT_TRUE(says_distrust(distrust_of_place(root / "safe" / "cache")));
}

}  // namespace
}  // namespace hstujit
