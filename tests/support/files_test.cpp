#include "compiler/support/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "compiler/support/folder.h"
#include "tests/support/little_memory.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    auto created = TempDir::create();
    ASSERT_TRUE(created.ok()) << created.status().message();
    folder_.emplace(std::move(created).value());
  }
  std::filesystem::path path(const std::string& name) const { return folder_->path() / name; }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_->path())) {
      found.push_back(entry.path().filename().native());
    }
    return found;
  }

  std::optional<TempDir> folder_;
};

TEST_F(Files, WhatIsWrittenIsRead) {
  for (const std::string& bytes : {std::string(), std::string("a\0b\n", 4), std::string(100000, 'x')}) {
    ASSERT_TRUE(write_file_atomically(path("f"), bytes).ok());
    const auto read = whole_file(path("f"));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, bytes);
  }
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

TEST_F(Files, FilesWithoutASizeAreRead) {
  const auto read = whole_file("/proc/self/status");
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(*read, HasSubstr("Pid:"));
}

TEST_F(Files, NewFilesFollowTheUmask) {
  const mode_t old = ::umask(022);
  ASSERT_TRUE(write_file_atomically(path("f"), "x").ok());
  ::umask(old);
  struct stat info;
  ASSERT_EQ(::stat(path("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
}

TEST_F(Files, AMissingFileIsNotFoundAndNamed) {
  const auto read = whole_file(path("absent"));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), Code::kNotFound);
  EXPECT_THAT(read.status().message(), HasSubstr(path("absent").native()));
  EXPECT_THAT(read.status().message(), HasSubstr("No such file"));
}

TEST_F(Files, AFolderIsNotAFile) {
  const auto read = whole_file(folder_->path());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), Code::kIo);
  EXPECT_THAT(read.status().message(), HasSubstr("it is a folder, no regular file"));
}

TEST_F(Files, OnlyRegularFilesAreRead) {
  ASSERT_TRUE(write_file_atomically(path("f"), "bytes").ok());
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0666), 0);
  std::filesystem::create_symlink("f", path("link"));
  std::filesystem::create_symlink("/dev/zero", path("zero"));
  EXPECT_EQ(*whole_file(path("link")), "bytes");
  for (const auto& [other, kind] : {std::pair(path("pipe"), "a pipe"), {path("zero"), "a device"}}) {
    const auto read = whole_file(other);
    ASSERT_FALSE(read.ok()) << other;
    EXPECT_EQ(read.status().code(), Code::kIo);
    EXPECT_THAT(read.status().message(), HasSubstr(std::string("it is ") + kind + ", no regular file"));
  }
  EXPECT_EQ(append_line(path("pipe"), "nobody reads it").code(), Code::kIo);
  EXPECT_TRUE(is_program("/bin/sh"));
  EXPECT_FALSE(is_program(folder_->path()));
  EXPECT_FALSE(is_program(path("f")));
  // One that was cut off would end where it touches what is not there; a script has no such bytes.
  const auto sh = whole_file("/bin/sh");
  ASSERT_TRUE(sh.ok());
  for (const auto& [name, bytes] : {std::pair<const char*, std::string>{"whole", *sh},
                                    {"part", sh->substr(0, sh->size() / 2)},
                                    {"script", "#!/bin/sh\n"}}) {
    ASSERT_TRUE(write_file_atomically(path(name), bytes).ok());
    std::filesystem::permissions(path(name), std::filesystem::perms::owner_all);
    EXPECT_EQ(is_program(path(name)), name != std::string_view("part")) << name;
  }
}

TEST_F(Files, ANameIsNotCutOffAtANul) {
  ASSERT_TRUE(write_file_atomically(path("f"), "x").ok());
  const std::filesystem::path name = path(std::string("f\0g", 3));
  EXPECT_THAT(std::string(whole_file(name).status().message()), HasSubstr("f\\x00g\": a NUL is in its name"));
  EXPECT_THAT(std::string(write_file_atomically(name, "y").message()), HasSubstr("a NUL is in its name"));
  EXPECT_EQ(*whole_file(path("f")), "x");
}

TEST_F(Files, NoMoreIsReadThanTheCallerSays) {
  ASSERT_TRUE(write_file_atomically(path("f"), "bytes").ok());
  EXPECT_EQ(*read_file(path("f"), 5), "bytes");
  const Status status = read_file(path("f"), 4).status();
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr("it has more than 4 bytes, the most for a file of its kind"));
  // Without a size, and sparse: nothing of a terabyte is read, and no memory is taken for it.
  EXPECT_THAT(read_file("/proc/self/maps", 100).status().message(), HasSubstr("it has more than 100 bytes"));
  std::filesystem::resize_file(path("f"), uint64_t{1} << 40);
  EXPECT_THAT(read_file(path("f"), 1 << 20).status().message(), HasSubstr("it has more than 1048576 bytes"));
}

TEST_F(Files, WhatFailsWithoutADiskIsNoFailureOfTheSystem) {
  for (const Status& status :
       {read_file("/proc/self/mem", 100).status(), read_file_head("/proc/self/mem", 1).status()}) {
    EXPECT_EQ(status.code(), Code::kIo) << status.message();
    EXPECT_FALSE(is_system_failure(status));
  }
}

// It is there: what is not to be had is a file beside it.
TEST_F(Files, AFileThatNoneCanReplaceIsNotSaidToBeMissing) {
  const Status status = write_file_atomically("/proc/self/mem", "bytes");
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(status.message(),
            "cannot write \"/proc/self/mem\": its folder takes no new file, which would take its place");
}

TEST_F(Files, WantOfMemoryIsAFailure) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer needs all of the address space";
  ASSERT_TRUE(write_file_atomically(path("f"), "bytes").ok());
  std::filesystem::resize_file(path("f"), uint64_t{1} << 30);
  EXPECT_TRUE(with_little_memory([&] { return whole_file(path("f")).status().code() == Code::kOutOfMemory; }));
}

TEST_F(Files, AFailedWriteLeavesNothing) {
  ASSERT_TRUE(make_directories(path("taken/inside")).ok());
  const Status status = write_file_atomically(path("taken"), "x");
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr("taken"));
  EXPECT_EQ(names(), std::vector<std::string>{"taken"});
  EXPECT_EQ(write_file_atomically(path("absent/f"), "x").code(), Code::kNotFound);
}

TEST_F(Files, WhatIsNoRegularFileStays) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0666), 0);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path("socket").native().copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(socket);
  std::filesystem::create_symlink("/dev/null", path("null"));
  ASSERT_TRUE(make_directories(path("folder")).ok());
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"pipe", "a pipe"}, {"socket", "a socket"}, {"null", "a device"}, {"folder", "a folder"}};
  for (const auto& [name, kind] : kinds) {
    struct stat before, after;
    ASSERT_EQ(::lstat(path(name).c_str(), &before), 0);
    for (const Status& status : {write_file_atomically(path(name), "bytes"), check_output(path(name))}) {
      EXPECT_EQ(status.code(), Code::kIo) << name;
      EXPECT_THAT(status.message(), HasSubstr("cannot write \"" + path(name).native() + "\": it is " + kind));
    }
    ASSERT_EQ(::lstat(path(name).c_str(), &after), 0);
    EXPECT_EQ(after.st_ino, before.st_ino) << name;
  }
  EXPECT_EQ(names().size(), kinds.size());
  EXPECT_FALSE(write_file_atomically(path("new/"), "bytes").ok());
}

TEST_F(Files, AWriteFollowsLinks) {
  ASSERT_TRUE(make_directories(path("inner")).ok());
  ASSERT_TRUE(write_file_atomically(path("inner/target"), "old").ok());
  std::filesystem::create_symlink("inner/target", path("one"));
  std::filesystem::create_symlink(path("one"), path("two"));
  std::filesystem::create_symlink("inner/new", path("dangling"));
  for (const char* name : {"one", "two", "dangling"}) {
    EXPECT_TRUE(check_output(path(name)).ok());
    ASSERT_TRUE(write_file_atomically(path(name), name).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(path(name))) << name;
    EXPECT_EQ(*whole_file(path(name)), name);
  }
  EXPECT_EQ(*whole_file(path("inner/target")), "two");
  std::filesystem::create_symlink("circle", path("circle"));
  EXPECT_THAT(write_file_atomically(path("circle"), "x").message(), HasSubstr("symbolic links"));
}

TEST_F(Files, AReplacedFileKeepsItsPermissions) {
  ASSERT_TRUE(write_file_atomically(path("f"), "old").ok());
  for (const mode_t mode : {0600, 0664, 0755, 0666}) {
    ASSERT_EQ(::chmod(path("f").c_str(), mode), 0);
    const bool owned = ::geteuid() != 0 || ::chown(path("f").c_str(), 65534, 65534) == 0;
    ASSERT_TRUE(write_file_atomically(path("f"), "new").ok());
    struct stat info;
    ASSERT_EQ(::stat(path("f").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, mode & ~S_IWOTH) << "others may not write it";
    EXPECT_TRUE(::geteuid() != 0 || !owned || info.st_uid == 65534u) << "root may give a file away";
  }
}

// The exit status of a process that runs `body`.
template <typename Body>
int status_of_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(Files, AtTheLimitOfItsSizeAFileIsAnError) {
  ASSERT_TRUE(write_file_atomically(path("f"), "old").ok());
  const std::string bytes(100'000, 'x');
  const auto fails = [&] {
    const rlimit limit = {1000, 1000};
    ::signal(SIGXFSZ, SIG_DFL);
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    sigset_t pending;
    const Status replaced = write_file_atomically(path("f"), bytes), appended = append_line(path("log"), bytes);
    const bool none_left = ::sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0;
    return replaced.code() == Code::kIo && appended.code() == Code::kIo && none_left;
  };
  EXPECT_EQ(status_of_child(fails), 0);
  EXPECT_EQ(*whole_file(path("f")), "old");
  EXPECT_EQ(names().size(), 2u) << "no temporary file is left beside the file and the log";
}

TEST_F(Files, WantOfOpenFilesSaysNothingAboutAFile) {
  ASSERT_TRUE(write_file_atomically(path("f"), "old").ok());
  const auto is_said = [&] {
    const rlimit limit = {3, 3};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    const Status of_file = whole_file(path("f")).status();
    const Status of_folder = Folder::open(folder_->path(), Trust::kAll).status();
    return is_system_failure(of_file) && is_system_failure(of_folder);
  };
  EXPECT_EQ(status_of_child(is_said), 0);
}

TEST_F(Files, FoldersAreMadeOnceAndTwice) {
  EXPECT_TRUE(make_directories(path("a/b/c")).ok());
  EXPECT_TRUE(make_directories(path("a/b/c")).ok());
  ASSERT_TRUE(write_file_atomically(path("file"), "x").ok());
  const Status status = make_directories(path("file/below"));
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr("Not a directory"));
}

TEST_F(Files, LinesAreAppendedWhole) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n)
        EXPECT_TRUE(append_line(path("log"), std::string(60, static_cast<char>('a' + i))).ok());
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto text = whole_file(path("log"));
  ASSERT_TRUE(text.ok());
  size_t lines = 0;
  for (size_t begin = 0; begin < text->size(); begin += 61, ++lines) {
    EXPECT_EQ(text->substr(begin, 61), std::string(60, (*text)[begin]) + "\n");
  }
  EXPECT_EQ(lines, 200u);
}

TEST_F(Files, APartOfALineTakesNoOtherWithIt) {
  ASSERT_TRUE(append_line(path("log"), "whole").ok());
  const auto is_torn = [&] {
    const rlimit limit = {10, 10};
    return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 && append_line(path("log"), "torn apart").code() == Code::kIo;
  };
  ASSERT_EQ(status_of_child(is_torn), 0);
  EXPECT_EQ(*whole_file(path("log")), "whole\ntorn");
  ASSERT_TRUE(append_line(path("log"), "first").ok());
  ASSERT_TRUE(append_line(path("log"), "second").ok());
  EXPECT_EQ(*whole_file(path("log")), "whole\ntorn\nfirst\nsecond\n");
  std::filesystem::permissions(path("log"), std::filesystem::perms::owner_write);
  EXPECT_TRUE(append_line(path("log"), "third").ok()) << "it need not be readable";
}

TEST_F(Files, TheTemporaryFolderGoesWithItsOwner) {
  std::filesystem::path where;
  {
    auto created = TempDir::create(folder_->path());
    ASSERT_TRUE(created.ok());
    TempDir moved = std::move(created).value();
    where = moved.path();
    ASSERT_TRUE(write_file_atomically(where / "f", "x").ok());
    EXPECT_TRUE(std::filesystem::exists(where));
  }
  EXPECT_FALSE(std::filesystem::exists(where));
  EXPECT_EQ(TempDir::create(path("absent")).status().code(), Code::kNotFound);
}

// A writer that is killed at any moment leaves a whole file, the old one or a new one, and at most temporaries
// that can be told from it.
TEST_F(Files, AWriterKilledInTheMiddleLeavesAWholeFile) {
  constexpr size_t kSize = 1 << 20;
  ASSERT_TRUE(write_file_atomically(path("f"), std::string(kSize, 'A')).ok());
  for (int round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 0;; ++i) {
        if (!write_file_atomically(path("f"), std::string(kSize, static_cast<char>('A' + i % 26))).ok()) ::_exit(1);
      }
    }
    ::usleep(500 + 733 * static_cast<useconds_t>(round));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int state = 0;
    ASSERT_EQ(::waitpid(child, &state, 0), child);
    ASSERT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL);

    const auto read = whole_file(path("f"));
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(read->size(), kSize);
    ASSERT_TRUE(std::all_of(read->begin(), read->end(), [&](char c) { return c == read->front(); }));
  }
  for (const std::string& name : names()) EXPECT_TRUE(name == "f" || is_abandoned_temporary(name)) << name;
}

// Readers beside several writers never see a mixture.
TEST_F(Files, ReadersSeeOneWriterOrAnother) {
  ASSERT_TRUE(write_file_atomically(path("f"), std::string(50000, 'A')).ok());
  std::vector<std::thread> writers;
  for (int i = 0; i < 3; ++i) {
    writers.emplace_back([&, i] {
      for (int n = 0; n < 30; ++n) {
        EXPECT_TRUE(write_file_atomically(path("f"), std::string(50000, static_cast<char>('A' + i))).ok());
      }
    });
  }
  for (int n = 0; n < 100; ++n) {
    const auto read = whole_file(path("f"));
    EXPECT_TRUE(read.ok());
    if (read.ok()) {
      EXPECT_EQ(*read, std::string(50000, read->front()));
    }
  }
  for (std::thread& writer : writers) writer.join();
}

TEST_F(Files, AnotherUsersFileInAStickyFolderIsNoOutput) {
  const uid_t user = ::geteuid();
  if (user != 0) GTEST_SKIP() << "only the superuser can become another";
  namespace fs = std::filesystem;
  fs::permissions(path(""), fs::perms(0755));
  fs::create_directory(path("sticky"));
  fs::permissions(path("sticky"), fs::perms(01777));
  ASSERT_TRUE(write_file_atomically(path("sticky/file"), "x").ok());
  ASSERT_EQ(::seteuid(65534), 0);
  const Status refused = check_output(path("sticky/file")), other = check_output(path("sticky/other"));
  ASSERT_EQ(::seteuid(user), 0);
  EXPECT_THAT(refused.message(), HasSubstr("cannot replace"));
  EXPECT_TRUE(other.ok()) << other.message();
  EXPECT_TRUE(check_output(path("sticky/file")).ok());
}

TEST_F(Files, AnOutputNeedsAFolderThatTakesFiles) {
  EXPECT_TRUE(check_output("a-file-that-nobody-has").ok()) << "in the folder that the process is in";
  EXPECT_EQ(check_output(path("none/file")).code(), Code::kNotFound);
  ASSERT_TRUE(write_file_atomically(path("f"), "x").ok());
  EXPECT_EQ(check_output(path("f/file")).code(), Code::kIo);
  if (::geteuid() == 0) return;  // whom nothing is forbidden
  ASSERT_TRUE(make_directories(path("locked"), 0500).ok());
  EXPECT_THAT(check_output(path("locked/file")).message(), HasSubstr("cannot write into folder"));
}

TEST_F(Files, AFileThatIsReplacedIsAnOutputAtEveryMoment) {
  ASSERT_TRUE(write_file_atomically(path("f"), "old").ok());
  std::filesystem::create_symlink("f", path("link"));
  std::atomic<bool> done = false;
  std::thread replacing([&] {
    while (!done) {
      std::filesystem::copy_file(path("f"), path("new"), std::filesystem::copy_options::overwrite_existing);
      std::filesystem::rename(path("new"), path("f"));
    }
  });
  for (int n = 0; n < 5000; ++n) {
    const Status status = check_output(path(n % 2 == 0 ? "f" : "link"));
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) break;
  }
  done = true;
  replacing.join();
}

TEST_F(Files, APathIsPlainWhereItLeadsToTheSame) {
  const std::filesystem::path path = this->path("folder");
  std::filesystem::create_directories(path / "a/b");
  EXPECT_EQ(plain_path(path / "a/b/../../a/./b"), (path / "a/b").native());
  EXPECT_EQ(plain_path(path / "none/.."), (path / "none/..").native());
  std::filesystem::create_directory(path / "lib");
  std::filesystem::create_directory(path / "a/lib");
  std::filesystem::create_symlink("a/b", path / "link");
  EXPECT_EQ(plain_path(path / "link/../lib"), (path / "link/../lib").native()) << "which is a/lib";
}

}  // namespace
}  // namespace hstujit
