#include "compiler/support/kept_files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "compiler/support/files.h"
#include "compiler/support/hash.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

class KeptFilesTest : public testing::Test {
 protected:
  fs::path file(const std::string& key) const { return folder() / key; }
  fs::path folder() const { return parent_.path() / "kept" / "here"; }
  KeptFiles kept() const { return KeptFiles(folder(), 4); }
  void set_age(const std::string& key, int hours) const {
    fs::last_write_time(file(key), fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  TempDir parent_ = std::move(TempDir::create()).value();
};

TEST_F(KeptFilesTest, WhatIsKeptIsFoundByItsKeyAlone) {
  const std::string value("log\0cubin", 9);
  EXPECT_EQ(kept().find("a1"), std::nullopt);
  kept().keep("a1", value);
  EXPECT_EQ(kept().find("a1"), value);
  EXPECT_EQ(kept().find("a2"), std::nullopt);
  EXPECT_EQ(fs::status(folder()).permissions(), fs::perms::owner_all);
}

TEST_F(KeptFilesTest, ADamagedFileIsAMiss) {
  kept().keep("a1", "value");
  for (const auto& bytes : {std::string(), std::string(64, '0'), sha256_hex("value") + "valu", sha256_hex("value")}) {
    ASSERT_TRUE(write_file_atomically(file("a1"), bytes).ok());
    EXPECT_EQ(kept().find("a1"), std::nullopt) << bytes;
  }
  kept().keep("a1", "value");
  EXPECT_EQ(kept().find("a1"), "value");
}

TEST_F(KeptFilesTest, WithoutAFolderNothingIsKept) {
  for (const KeptFiles& none : {KeptFiles(), KeptFiles("", 4), KeptFiles("/proc/no/folder", 4)}) {
    none.keep("a1", "value");
    EXPECT_EQ(none.find("a1"), std::nullopt);
  }
}

TEST_F(KeptFilesTest, WhatAnybodyMayHaveWrittenIsAMiss) {
  kept().keep("a1", "value");
  fs::permissions(file("a1"), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(kept().find("a1"), std::nullopt);
  fs::permissions(file("a1"), fs::perms::others_write, fs::perm_options::remove);

  fs::permissions(folder(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(kept().find("a1"), std::nullopt);
  kept().keep("a2", "value");
  EXPECT_FALSE(fs::exists(file("a2")));
  fs::permissions(folder(), fs::perms::others_write, fs::perm_options::remove);

  fs::permissions(folder().parent_path(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(kept().find("a1"), std::nullopt);
  fs::permissions(folder().parent_path(), fs::perms::others_write, fs::perm_options::remove);
  EXPECT_EQ(kept().find("a1"), "value");
}

TEST_F(KeptFilesTest, ALinkIsAMiss) {
  kept().keep("a1", "value");
  fs::create_symlink(file("a1"), file("a2"));
  EXPECT_EQ(kept().find("a2"), std::nullopt);
}

TEST_F(KeptFilesTest, WhatWasReadLatelyStays) {
  ASSERT_TRUE(make_directories(folder() / "another", 0700).ok());
  for (const char* key : {"a1", "a2", "a3", "a4"}) kept().keep(key, "value");
  for (const auto& [key, hours] : {std::pair{"a1", 9}, {"a2", 8}, {"a3", 7}, {"a4", 6}}) set_age(key, hours);
  EXPECT_TRUE(kept().find("a1"));
  kept().keep("a5", "value");
  EXPECT_TRUE(kept().find("a1") && kept().find("a4") && kept().find("a5"));
  EXPECT_FALSE(kept().find("a2") || kept().find("a3"));
  EXPECT_TRUE(fs::exists(folder() / "another"));
}

TEST_F(KeptFilesTest, ManyThreadsKeepAndFindWholeValues) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        const std::string key = "a" + std::to_string((i + thread) % 6);
        kept().keep(key, key + std::string(3000, 'x'));
        const auto found = kept().find(key);
        if (found && *found != key + std::string(3000, 'x')) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 8);
}

}  // namespace
}  // namespace hstujit
