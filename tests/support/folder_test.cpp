#include "compiler/support/folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <string>
#include <thread>
#include <vector>

#include "compiler/support/files.h"
#include "compiler/support/memory.h"
#include "tests/support/little_memory.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kMax = 1000;
constexpr unsigned kNobody = 65534;

class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto created = TempDir::create();
    ASSERT_TRUE(created.ok()) << created.status().message();
    temporary_.emplace(std::move(created).value());
    ASSERT_TRUE(fs::create_directory(path("")));
    ASSERT_TRUE(fs::create_directories(outside("inner")));
    ASSERT_TRUE(write_file_atomically(outside("file"), "secret").ok());
    ASSERT_TRUE(write_file_atomically(outside("inner/file"), "secret").ok());
  }
  fs::path path(const std::string& name) const { return temporary_->path() / "folder" / name; }
  fs::path outside(const std::string& name) const { return temporary_->path() / "outside" / name; }
  Folder folder(Trust trust = Trust::kAll) const { return Folder::open(path(""), trust).value(); }
  void write(const std::string& name, const std::string& bytes) const {
    ASSERT_TRUE(write_file_atomically(path(name), bytes).ok());
  }
  std::vector<std::string> names() const { return folder().names().value(); }
  void expect_outside_untouched() const {
    EXPECT_EQ(*whole_file(outside("file")), "secret");
    EXPECT_EQ(*whole_file(outside("inner/file")), "secret");
    EXPECT_THAT(Folder::open(outside(""), Trust::kAll)->names().value(), ElementsAre("file", "inner"));
    EXPECT_THAT(Folder::open(outside("inner"), Trust::kAll)->names().value(), ElementsAre("file"));
  }

  std::optional<TempDir> temporary_;
};

// In nanoseconds, 64 bits end in April 2262.
TEST_F(FolderTest, ATimeMayBeOfAnyCentury) {
  ASSERT_TRUE(folder().write("file", "bytes").ok());
  const int64_t now = folder().look("file")->written.seconds;
  EXPECT_GT(folder().look("file")->written, file_time_in(-std::chrono::hours(1)));
  EXPECT_LT(folder().look("file")->written, file_time_in(std::chrono::hours(1)));
  for (const int64_t seconds : {int64_t{9'246'182'400}, now + 1, int64_t{1}}) {
    const timespec times[2] = {{0, UTIME_OMIT}, {seconds, 5}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path("file").c_str(), times, 0), 0);
    const FileTime written = folder().look("file")->written;
    if (written.seconds == now) GTEST_SKIP() << "the file system keeps no such time";
    EXPECT_EQ(written, (FileTime{seconds, 5}));
    EXPECT_EQ(written > file_time_in(std::chrono::hours(1)), seconds > now + 1);
  }
}

TEST_F(FolderTest, WhatIsWrittenIsReadAndListed) {
  ASSERT_TRUE(folder().write("b", "bytes").ok());
  ASSERT_TRUE(folder().make_folder("a").ok());
  FileInfo info;
  EXPECT_EQ(*folder().read("b", kMax, &info), "bytes");
  EXPECT_EQ(info.bytes, 5u);
  EXPECT_FALSE(info.is_folder);
  EXPECT_GT(info.written.seconds, 0);
  EXPECT_EQ(*folder().read_head("b", 2, &info), "by");
  EXPECT_EQ(*folder().read_head("b", 20, &info), "bytes");
  EXPECT_TRUE(folder().look("a")->is_folder);
  EXPECT_THAT(names(), ElementsAre("a", "b"));
  EXPECT_EQ(folder().read("c", kMax).status().code(), Code::kNotFound);
  EXPECT_EQ(folder().look("c").status().code(), Code::kNotFound);
  EXPECT_EQ(folder().folder("c").status().code(), Code::kNotFound);
  EXPECT_EQ(folder().folder("b").status().code(), Code::kIo);
  EXPECT_EQ(folder().make_folder("b").status().code(), Code::kIo);
  EXPECT_EQ(folder().read("a", kMax).status().code(), Code::kIo);
  EXPECT_TRUE(folder().remove("b").ok());
  EXPECT_TRUE(folder().remove("b").ok()) << "it is gone";
  EXPECT_FALSE(folder().remove("a").ok()) << "a folder";
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(FolderTest, AnyNameThatTheSystemTakesIsWritten) {
  for (const size_t length : {size_t{200}, size_t{233}, size_t{234}, size_t{NAME_MAX}}) {
    const std::string name(length, 'a');
    for (const char* const bytes : {"new", "replaced"}) {
      const Status status = folder().write(name, bytes);
      EXPECT_TRUE(status.ok()) << length << " " << status.message();
    }
    EXPECT_EQ(folder().exchange(name, "exchanged", kMax)->value_or(""), "replaced") << length;
  }
  EXPECT_EQ(names().size(), 4u);
  EXPECT_FALSE(folder().write(std::string(NAME_MAX + 1, 'a'), "bytes").ok());
}

TEST_F(FolderTest, NoLinkIsFollowed) {
  fs::create_symlink(outside("file"), path("file"));
  fs::create_symlink(outside("inner"), path("inner"));
  FileInfo info;
  for (const Status& status : {folder().read("file", kMax).status(), folder().look("file").status(),
                               folder().read_head("file", 1, &info).status(), folder().look("inner").status(),
                               folder().folder("inner").status(), folder().make_folder("inner").status()}) {
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_THAT(status.message(), HasSubstr("it is a symbolic link"));
  }
  folder().remove_folder("inner");
  EXPECT_TRUE(fs::is_symlink(path("inner"))) << "it is no folder";
  fs::last_write_time(outside("file"), fs::file_time_type());
  folder().touch("file");
  EXPECT_EQ(fs::last_write_time(outside("file")), fs::file_time_type());
  expect_outside_untouched();

  ASSERT_TRUE(folder().write("file", "new").ok());
  EXPECT_EQ(*folder().read("file", kMax), "new") << "in place of the link";
  const auto displaced = folder().exchange("inner", "new", kMax);
  ASSERT_TRUE(displaced.ok()) << displaced.status().message();
  EXPECT_FALSE(displaced->has_value()) << "a link holds no bytes";
  EXPECT_EQ(*folder().read("inner", kMax), "new");
  fs::create_symlink(outside("file"), path("link"));
  ASSERT_TRUE(folder().remove("link").ok());
  EXPECT_THAT(names(), ElementsAre("file", "inner"));
  expect_outside_untouched();
}

TEST_F(FolderTest, RemovingAFolderCrossesNoLink) {
  ASSERT_TRUE(make_directories(path("gone/deeper")).ok());
  write("gone/deeper/file", "x");
  fs::create_symlink(outside("inner"), path("gone/link"));
  fs::create_symlink(outside("file"), path("gone/deeper/link"));
  folder().remove_folder("gone");
  EXPECT_THAT(names(), ElementsAre());
  expect_outside_untouched();
}

// A name that is a good file when it is looked at and a link when it is read.
TEST_F(FolderTest, WhatIsSwappedMeanwhileGivesNothingFromOutside) {
  write("file", "good");
  fs::create_symlink(outside("file"), path("other"));
  ASSERT_TRUE(fs::create_directory(path("inner")));
  write("inner/file", "good");
  fs::create_symlink(outside("inner"), path("another"));
  std::atomic<bool> done = false;
  std::thread swapping([&] {
    while (!done) {
      ::renameat2(AT_FDCWD, path("file").c_str(), AT_FDCWD, path("other").c_str(), RENAME_EXCHANGE);
      ::renameat2(AT_FDCWD, path("inner").c_str(), AT_FDCWD, path("another").c_str(), RENAME_EXCHANGE);
    }
  });
  int good = 0;
  for (int i = 0; i < 4000; ++i) {
    if (const auto read = folder().read("file", kMax); read.ok()) {
      EXPECT_EQ(*read, "good");
      ++good;
    }
    if (const auto inner = folder().folder("inner"); inner.ok()) {
      EXPECT_EQ(*inner->read("file", kMax), "good");
    }
  }
  done = true;
  swapping.join();
  EXPECT_GT(good, 0);
  expect_outside_untouched();
}

TEST_F(FolderTest, OnlyRegularFilesOfAnAllowedSizeAreRead) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(folder().read("pipe", kMax).status().message(), HasSubstr("it is no regular file"));
  EXPECT_THAT(folder().look("pipe").status().message(), HasSubstr("it is no regular file"));
  write("sparse", "");
  fs::resize_file(path("sparse"), uintmax_t{1} << 40);
  EXPECT_THAT(folder().read("sparse", kMax).status().message(),
              HasSubstr("it has more than 1000 bytes, the most for a file of its kind"));
  write("largest", std::string(kMax, 'x'));
  EXPECT_EQ(folder().read("largest", kMax)->size(), kMax);
}

TEST_F(FolderTest, WhatIsMadeIsNotForAllToWriteWhateverTheUmask) {
  fs::permissions(path(""), fs::perms(0750));
  const mode_t old = ::umask(0);
  ASSERT_TRUE(folder(Trust::kOwn).write("own", "x").ok());
  ASSERT_TRUE(folder(Trust::kAll).write("all", "x").ok());
  ASSERT_TRUE(folder(Trust::kOwn).make_folder("inner").ok());
  ::umask(old);
  EXPECT_EQ(fs::status(path("own")).permissions(), fs::perms(0664));
  EXPECT_EQ(fs::status(path("all")).permissions(), fs::perms(0664));
  EXPECT_EQ(fs::status(path("inner")).permissions(), fs::perms(0750)) << "as the folder that it is in";
}

TEST_F(FolderTest, WhatAnybodyMayWriteIsNotTrusted) {
  write("file", "x");
  ASSERT_TRUE(fs::create_directory(path("inner")));
  for (const char* name : {"file", "inner"}) fs::permissions(path(name), fs::perms(0777));
  for (const Status& status :
       {folder(Trust::kOwn).read("file", kMax).status(), folder(Trust::kOwn).look("file").status(),
        folder(Trust::kOwn).folder("inner").status(), folder(Trust::kOwn).make_folder("inner").status()}) {
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_THAT(status.message(), HasSubstr("anybody may write it (mode 777)"));
  }
  EXPECT_TRUE(folder(Trust::kAll).read("file", kMax).ok());
  EXPECT_TRUE(folder(Trust::kAll).folder("inner").ok());
  for (const char* name : {"file", "inner"}) fs::permissions(path(name), fs::perms(0775));
  EXPECT_TRUE(folder(Trust::kOwn).read("file", kMax).ok()) << "a group may write it";
  EXPECT_TRUE(folder(Trust::kOwn).folder("inner").ok());
}

TEST_F(FolderTest, WhatAnotherUserOwnsIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only a superuser can give files away";
  write("file", "x");
  ASSERT_TRUE(fs::create_directory(path("inner")));
  for (const char* name : {"file", "inner"}) ASSERT_EQ(::chown(path(name).c_str(), kNobody, kNobody), 0);
  for (const Status& status :
       {folder(Trust::kOwn).read("file", kMax).status(), folder(Trust::kOwn).look("file").status(),
        folder(Trust::kOwn).folder("inner").status()}) {
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_THAT(status.message(), HasSubstr("it belongs to the user 65534, who is neither root nor the user 0"));
  }
  EXPECT_TRUE(folder(Trust::kAll).read("file", kMax).ok());
  const auto displaced = folder(Trust::kOwn).exchange("file", "new", kMax);
  EXPECT_FALSE(displaced.ok()) << "another's file stays in its place";
  EXPECT_EQ(*folder().read("file", kMax), "x");
  EXPECT_THAT(names(), ElementsAre("file", "inner"));
}

TEST_F(FolderTest, AnExchangeGivesWhatWasThere) {
  const auto first = folder().exchange("a", "one", kMax);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_FALSE(first->has_value());
  const auto second = folder().exchange("a", "two", kMax);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(*second, "one");
  EXPECT_EQ(*whole_file(path("a")), "two");
  EXPECT_FALSE(Folder::open(path("none"), Trust::kAll).ok());
  EXPECT_THAT(names(), ElementsAre("a")) << "no temporary is left";
}

TEST_F(FolderTest, WhatAnExchangeCannotHandOnGoesBack) {
  ASSERT_TRUE(folder().exchange("a", "one", kMax).ok());
  std::string seen;
  const auto refused = folder().exchange("a", "two", kMax, [&](const std::string& displaced) {
    seen = displaced;
    return out_of_memory();
  });
  EXPECT_EQ(refused.status().code(), Code::kOutOfMemory);
  EXPECT_EQ(seen, "one");
  EXPECT_EQ(*whole_file(path("a")), "one");
  EXPECT_THAT(names(), ElementsAre("a")) << "no temporary is left";
}

// Neither to read what it has displaced, nor to look at its own bytes again.
TEST_F(FolderTest, WithoutMemoryAnExchangeLeavesTheFile) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer needs all of the address space";
  const size_t large = size_t{80} << 20;
  write("a", "one");
  fs::resize_file(path("a"), large);
  const std::string ours(large, 'x');
  EXPECT_TRUE(
      with_little_memory([&] { return folder().exchange("a", ours, large).status().code() == Code::kOutOfMemory; }));
  FileInfo info;
  EXPECT_EQ(*folder().read_head("a", 3, &info), "one");
  EXPECT_THAT(names(), ElementsAre("a")) << "no temporary is left";
}

// In a process that permissions hold for.
TEST_F(FolderTest, AnExchangeLosesNoBytes) {
  ASSERT_TRUE(write_file_atomically(path("secret"), "one").ok());
  ASSERT_TRUE(write_file_atomically(path("plain"), "two").ok());
  ASSERT_EQ(::chmod(path("secret").c_str(), 0200), 0);
  ASSERT_EQ(::chmod(path("plain").c_str(), 0644), 0);
  ASSERT_EQ(::chmod(temporary_->path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path("").c_str(), 0333), 0);  // files can be made and opened, the folder itself cannot
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(1);
    if (folder().exchange("secret", "new", kMax).ok()) ::_exit(2);
    const auto displaced = folder().exchange("plain", "new", kMax);
    ::_exit(displaced.ok() && *displaced == "two" ? 0 : 3);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(::chmod(path("").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path("secret").c_str(), 0600), 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*whole_file(path("secret")), "one") << "what could not be read was put back";
  EXPECT_EQ(*whole_file(path("plain")), "new");
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(FolderTest, TemporaryNamesAreRecognised) {
  EXPECT_TRUE(is_abandoned_temporary(".name.0123456789abcdef.tmp"));
  EXPECT_TRUE(is_abandoned_temporary("folder/.a.cubin.0123456789abcdef.tmp"));
  EXPECT_FALSE(is_abandoned_temporary("name.0123456789abcdef.tmp"));
  EXPECT_FALSE(is_abandoned_temporary(".name.0123456789abcdeg.tmp"));
  EXPECT_FALSE(is_abandoned_temporary(".name.tmp"));
  EXPECT_FALSE(is_abandoned_temporary(".tmp"));
  EXPECT_FALSE(is_abandoned_temporary("0123456789abcdef.cubin"));
}

}  // namespace
}  // namespace hstujit
