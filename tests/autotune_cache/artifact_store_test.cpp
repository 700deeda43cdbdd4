#include "autotune_cache/store/artifact_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include "autotune_cache/files/cache_tree.h"
#include "cache_fixture.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using ArtifactStoreTest = CacheTest;

const std::string kCubin = cubin_of(std::string("cubin\0bytes", 11));

TEST_F(ArtifactStoreTest, SaysWhatItCouldNotKeepUntilItHas) {
  ArtifactStore store(user_only(), log());
  {
    std::ofstream(path("user")) << "no folder";
  }
  EXPECT_FALSE(store.put(sample_key(), kCubin, sample_info()));
  EXPECT_FALSE(store.put(sample_key("{}"), kCubin, sample_info()));
  EXPECT_EQ(store.not_kept().entries, 2);
  EXPECT_THAT(store.not_kept().reason, ::testing::HasSubstr(path("user")));
  std::filesystem::remove(path("user"));
  EXPECT_TRUE(store.put(sample_key(), kCubin, sample_info()));
  EXPECT_EQ(store.not_kept().entries, 1);
}

TEST_F(ArtifactStoreTest, RoundTrip) {
  ArtifactStore writer(user_only(), log());
  EXPECT_FALSE(writer.find(sample_key()).has_value());
  EXPECT_TRUE(writer.put(sample_key(), kCubin, sample_info()));

  ArtifactStore reader(user_only(), log());
  const auto found = reader.find(sample_key());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->cubin, kCubin);
  EXPECT_EQ(found->info, sample_info());
  EXPECT_EQ(found->directory, path("user"));
  EXPECT_FALSE(reader.find(sample_key(R"({"block_m":64})")).has_value());
}

TEST_F(ArtifactStoreTest, WhatIsNoElfImageIsNotKept) {
  ArtifactStore store(user_only(), log());
  for (const std::string& bytes : {std::string(), std::string("text"), kCubin.substr(0, 20)}) {
    EXPECT_FALSE(store.put(sample_key(), bytes, sample_info()));
    EXPECT_FALSE(store.find(sample_key()).has_value());
  }
  EXPECT_EQ(events("not_stored"), 3);
}

TEST_F(ArtifactStoreTest, AGoodEntryIsLeftAsItIs) {
  ArtifactStore store(user_only(), log());
  EXPECT_TRUE(store.put(sample_key(), cubin_of("first"), sample_info()));
  EXPECT_TRUE(store.put(sample_key(), cubin_of("second"), sample_info()));
  EXPECT_EQ(store.find(sample_key())->cubin, cubin_of("first"));
}

TEST_F(ArtifactStoreTest, ADroppedEntryMakesRoomForAnother) {
  ArtifactStore store(user_only(), log());
  ASSERT_TRUE(store.put(sample_key(), cubin_of("first"), sample_info()));
  store.drop(sample_key(), cubin_of("first"));
  EXPECT_EQ(events("dropped"), 1);
  EXPECT_FALSE(fs::exists(files_of(sample_key()).metadata));
  EXPECT_FALSE(store.find(sample_key()).has_value());
  EXPECT_TRUE(store.put(sample_key(), cubin_of("second"), sample_info()));
  EXPECT_EQ(store.find(sample_key())->cubin, cubin_of("second"));
}

TEST_F(ArtifactStoreTest, OnlyTheEntryThatWasMeantIsDropped) {
  ArtifactStore(CacheDirectories{.user = path("system"), .read_only = {}}, log())
      .put(sample_key(), cubin_of("first"), sample_info());
  ArtifactStore store(CacheDirectories{.user = path("user"), .read_only = {path("system")}}, log());
  store.drop(sample_key(), cubin_of("first"));
  EXPECT_EQ(store.find(sample_key())->cubin, cubin_of("first")) << "read-only directories stay as they are";
  ASSERT_TRUE(store.put(sample_key(), cubin_of("replaced meanwhile"), sample_info()));
  store.drop(sample_key(), cubin_of("first"));
  EXPECT_EQ(store.find(sample_key())->cubin, cubin_of("replaced meanwhile"));
}

TEST_F(ArtifactStoreTest, NotesLieBesideTheirEntryAndGoWithIt) {
  ArtifactStore writer(user_only(), log());
  ASSERT_TRUE(writer.put(sample_key(), cubin_of("cubin"), sample_info()));
  writer.annotate(sample_key(), {{".cu", "source"}, {".mlir", "module {}"}});
  const ArtifactFiles files = files_of(sample_key());
  EXPECT_EQ(*whole_file(files.note(".cu")), "source");
  ArtifactStore store(user_only(), log());
  ASSERT_EQ(store.verify().size(), 1u);
  EXPECT_EQ(store.verify()[0].problem, "");
  const PruneReport report = store.prune({.max_bytes = 0, .nvrtc = {}});
  EXPECT_EQ(report.removed, 1);
  EXPECT_GE(report.removed_bytes, std::string("cubinsourcemodule {}").size());
  EXPECT_FALSE(fs::exists(files.note(".cu")));
  EXPECT_FALSE(fs::exists(files.note(".mlir")));
}

TEST_F(ArtifactStoreTest, ANoteWithoutAnEntryIsALeftover) {
  ArtifactStore store(user_only(), log());
  const fs::path note = files_of(sample_key()).note(".log");
  fs::create_directories(note.parent_path());
  ASSERT_TRUE(write_file_atomically(note, "log").ok());
  EXPECT_EQ(store.verify().size(), 0u) << "its writer may be under way";
  EXPECT_EQ(store.prune({}).leftovers, 0);
  set_age(note, std::chrono::hours(2));
  ASSERT_EQ(store.verify().size(), 1u);
  EXPECT_THAT(store.verify()[0].problem, HasSubstr("it has no metadata"));
  EXPECT_EQ(store.prune({}).leftovers, 1);
  EXPECT_FALSE(fs::exists(note));
}

TEST_F(ArtifactStoreTest, LaysFilesOutByArchAndDigest) {
  ArtifactStore store(user_only(), log());
  ASSERT_TRUE(store.put(sample_key(), kCubin, sample_info()));
  const std::string digest = *artifact_digest(sample_key());
  const std::string folder = path("user") + "/v1/sm_90a/" + digest.substr(0, 2) + "/";
  EXPECT_TRUE(fs::is_regular_file(folder + digest + ".cubin"));
  EXPECT_TRUE(fs::is_regular_file(folder + digest + ".json"));
}

TEST_F(ArtifactStoreTest, ReadsLayersInOrder) {
  ArtifactStore(CacheDirectories{.user = path("system"), .read_only = {}}, log())
      .put(sample_key(), cubin_of("system"), sample_info());
  const ArtifactKey other = sample_key(R"({"block_m":64})");
  ArtifactStore(CacheDirectories{.user = path("shared"), .read_only = {}}, log())
      .put(other, cubin_of("shared"), sample_info());

  ArtifactStore store(
      CacheDirectories{.user = path("user"), .read_only = {path("absent"), path("shared"), path("system")}}, log());
  EXPECT_EQ(store.find(sample_key())->cubin, cubin_of("system"));
  EXPECT_EQ(store.find(other)->cubin, cubin_of("shared"));
  // A hit in a read-only layer is not copied, and put adds to the user's directory alone.
  EXPECT_FALSE(fs::exists(path("user")));
  EXPECT_TRUE(store.put(sample_key(), cubin_of("user"), sample_info()));
  EXPECT_EQ(store.find(sample_key())->cubin, cubin_of("user"));
  EXPECT_EQ(store.list().size(), 3u);
}

TEST_F(ArtifactStoreTest, ABadUpperLayerFallsThrough) {
  ArtifactStore(CacheDirectories{.user = path("system"), .read_only = {}}, log())
      .put(sample_key(), cubin_of("good"), sample_info());
  ArtifactStore store(CacheDirectories{.user = path("user"), .read_only = {path("system")}}, log());
  ASSERT_TRUE(store.put(sample_key(), cubin_of("mine"), sample_info()));
  ASSERT_TRUE(write_file_atomically(files_of(sample_key()).cubin, cubin_of("rubbish")).ok());
  EXPECT_EQ(store.find(sample_key())->cubin, cubin_of("good"));
}

TEST_F(ArtifactStoreTest, CacheDirectoryThatIsAFile) {
  ASSERT_TRUE(write_file_atomically(path("user"), "a file").ok());
  ArtifactStore store(user_only(), log());
  EXPECT_FALSE(store.find(sample_key()).has_value());
  EXPECT_FALSE(store.put(sample_key(), kCubin, sample_info()));
  EXPECT_FALSE(store.put(sample_key(R"({"block_m":64})"), kCubin, sample_info()));
  EXPECT_EQ(events("directory_not_used"), 1);  // logged once, not per entry
  EXPECT_EQ(lines_.size(), 2u) << "and the look-up's miss";
  const std::vector<VerifiedFile> bad = store.verify();
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].path, path("user"));
  EXPECT_EQ(store.prune({.max_bytes = 0, .nvrtc = {}}).removed, 0);
}

TEST_F(ArtifactStoreTest, ReadOnlyDirectory) {
  if (::geteuid() == 0) {
    // Permissions do not stop root; a place where nobody can create a folder does.
    ArtifactStore store(CacheDirectories{.user = "/proc/hstujit", .read_only = {}}, log());
    EXPECT_FALSE(store.put(sample_key(), kCubin, sample_info()));
    EXPECT_FALSE(store.find(sample_key()).has_value());
  } else {
    ASSERT_TRUE(make_directories(path("user")).ok());
    fs::permissions(path("user"), fs::perms::owner_read | fs::perms::owner_exec);
    ArtifactStore store(user_only(), log());
    EXPECT_FALSE(store.put(sample_key(), kCubin, sample_info()));
    EXPECT_FALSE(store.find(sample_key()).has_value());
    fs::permissions(path("user"), fs::perms::owner_all);
  }
  EXPECT_EQ(events("directory_not_writable"), 1);
}

// A limit on the size of files stands in for a full disk: a write stops in the middle. In a process of its own.
TEST_F(ArtifactStoreTest, AWriteThatStopsInTheMiddleIsLoggedOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ArtifactStore store(user_only(), log());
    const bool refused = !store.put(sample_key(), cubin_of(std::string(10000, 'x')), sample_info()) &&
                         !store.put(sample_key(), cubin_of(std::string(10000, 'x')), sample_info()) &&
                         !store.find(sample_key()).has_value();
    ::_exit(refused && events("directory_not_writable") == 1 && events("bad_entry") == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(ArtifactStore(user_only(), log()).verify(), IsEmpty());
}

TEST_F(ArtifactStoreTest, MissingHomeMeansMemoryOnly) {
  const CacheDirectories directories = CacheDirectories::from_environment(Environment::of_values({}), log());
  EXPECT_EQ(events("no_directory"), 1);
  EXPECT_EQ(directories.user, "");
  ArtifactStore store(directories, log());
  EXPECT_FALSE(store.put(sample_key(), kCubin, sample_info()));
  EXPECT_FALSE(store.find(sample_key()).has_value());
  EXPECT_EQ(store.prune({}).kept, 0);
}

TEST_F(ArtifactStoreTest, DirectoriesComeFromTheEnvironment) {
  const CacheDirectories directories = CacheDirectories::from_environment(
      Environment::of_values({{"HSTUJIT_CACHE_DIR", "/a"}, {"HSTUJIT_CACHE_PATH", "/b:/c"}}), log());
  EXPECT_THAT(directories.in_order(), ::testing::ElementsAre("/a", "/b", "/c"));
}

// Four entries of which the first is the least recently used.
class PruneTest : public CacheTest {
 protected:
  void SetUp() override {
    CacheTest::SetUp();
    // Folders that are made below have the same permissions, so another user can read it.
    ASSERT_TRUE(fs::create_directory(path("user")));
    fs::permissions(path("user"), fs::perms(0755));
    ArtifactStore store(user_only(), log());
    for (int i = 0; i < 4; ++i) {
      ArtifactInfo info = sample_info();
      info.nvrtc = i == 2 ? "12.8" : "13.0";
      ASSERT_TRUE(store.put(key(i), cubin_of(std::string(10000, static_cast<char>('a' + i))), info));
      set_age(files_of(key(i)).cubin, std::chrono::hours(40 - i));
      set_age(files_of(key(i)).metadata, std::chrono::hours(40 - i));
    }
  }
  static ArtifactKey key(int i) { return sample_key(R"({"block_m":)" + std::to_string(i) + "}"); }
  std::vector<int> present() {
    std::vector<int> kept;
    for (int i = 0; i < 4; ++i) {
      if (fs::exists(files_of(key(i)).cubin) && fs::exists(files_of(key(i)).metadata)) kept.push_back(i);
    }
    return kept;
  }
};

TEST_F(PruneTest, LeastRecentlyUsedFirst) {
  ArtifactStore store(user_only(), log());
  const PruneReport report = store.prune({.max_bytes = 25000, .nvrtc = {}});
  EXPECT_THAT(present(), ::testing::ElementsAre(2, 3));
  EXPECT_EQ(report.removed, 2);
  EXPECT_EQ(report.kept, 2);
  EXPECT_LE(report.kept_bytes, 25000u);
  EXPECT_GT(report.removed_bytes, 20000u);
}

TEST_F(PruneTest, AHitMakesAnEntryRecent) {
  {
    ASSERT_TRUE(ArtifactStore(user_only(), log()).find(key(0)).has_value());
  }
  ArtifactStore(user_only(), log()).prune({.max_bytes = 12000, .nvrtc = {}});
  EXPECT_THAT(present(), ::testing::ElementsAre(0));
}

TEST_F(PruneTest, AHitByAnotherUserMakesAnEntryRecent) {
  if (::geteuid() != 0) GTEST_SKIP() << "only a superuser can act for two users";
  // Shared by a group: the files are another user's, but everybody may write them.
  fs::permissions(files_of(key(0)).metadata, fs::perms(0666));
  fs::permissions(files_of(key(1)).metadata, fs::perms(0444));
  EXPECT_TRUE(as_another_user([&] {
    ArtifactStore store(shared(), Log());
    return store.find(key(0)).has_value() && store.find(key(1)).has_value();
  }));
  ArtifactStore(shared(), log()).prune({.max_bytes = 12000, .nvrtc = {}});
  EXPECT_THAT(present(), ::testing::ElementsAre(0));
}

TEST_F(PruneTest, WhatCannotBeRemovedIsKept) {
  for (int i = 0; i < 2; ++i) fs::permissions(files_of(key(i)).cubin.parent_path(), fs::perms(0555));
  const auto folder_is_open = [&](int i) {
    const fs::path folder = files_of(key(i)).cubin.parent_path();
    return folder != files_of(key(0)).cubin.parent_path() && folder != files_of(key(1)).cubin.parent_path();
  };
  ASSERT_TRUE(folder_is_open(2) && folder_is_open(3));
  for (int i = 2; i < 4; ++i) fs::permissions(files_of(key(i)).cubin.parent_path(), fs::perms(0777));
  EXPECT_TRUE(as_another_user([&] {
    ArtifactStore store(shared(), log());
    const PruneReport report = store.prune({.max_bytes = 0, .nvrtc = {}});
    return report.removed == 2 && report.not_removed == 2 && report.kept == 2 && report.kept_bytes > 20000 &&
           report.removed_bytes > 20000 && report.removed_bytes < 25000 && events("not_removed") == 1;
  }));
  EXPECT_THAT(present(), ::testing::ElementsAre(0, 1));
  for (int i = 0; i < 2; ++i) fs::permissions(files_of(key(i)).cubin.parent_path(), fs::perms(0755));
}

TEST_F(PruneTest, ACacheThatCannotBeReadIsNoEmptyOne) {
  EXPECT_TRUE(without_open_files([&] {
    const PruneReport report = ArtifactStore(user_only(), Log()).prune({.max_bytes = 0, .nvrtc = {}});
    return is_system_failure(report.unread) && report.removed == 0;
  }));
  EXPECT_THAT(present(), ::testing::ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(ArtifactStore(user_only(), Log()).prune({.max_bytes = {}, .nvrtc = "none"}).unread.ok());
}

TEST_F(PruneTest, KeepsWhatThisProcessUses) {
  ArtifactStore store(user_only(), log());
  ASSERT_TRUE(store.find(key(1)).has_value());
  set_age(files_of(key(1)).metadata, std::chrono::hours(1000));
  const PruneReport report = store.prune({.max_bytes = 0, .nvrtc = {}});
  EXPECT_THAT(present(), ::testing::ElementsAre(1));
  EXPECT_EQ(report.kept, 1);
}

TEST_F(PruneTest, DropsWhatAVersionBuilt) {
  ArtifactStore(user_only(), log()).prune({.max_bytes = {}, .nvrtc = "12.8"});
  EXPECT_THAT(present(), ::testing::ElementsAre(0, 1, 3));
}

TEST_F(PruneTest, PutKeepsTheDirectoryBounded) {
  ArtifactStore store(user_only(), log(), 25000);
  ASSERT_TRUE(store.put(key(4), cubin_of(std::string(10000, 'e')), sample_info()));
  EXPECT_THAT(present(), ::testing::ElementsAre(3));
  EXPECT_TRUE(store.find(key(4)).has_value());
}

TEST_F(PruneTest, SweepsOldLeftoversOnly) {
  const fs::path folder = files_of(key(0)).cubin.parent_path();
  const fs::path old_file = folder / ".x.cubin.0123456789abcdef.tmp";
  const fs::path new_file = folder / ".x.cubin.0123456789abcde0.tmp";
  ASSERT_TRUE(write_file_atomically(old_file, "half").ok());
  ASSERT_TRUE(write_file_atomically(new_file, "half").ok());
  set_age(old_file, std::chrono::hours(2));
  const fs::path choices = fs::path(path("user")) / "v1" / "choices" / "ab";
  fs::create_directories(choices);
  const fs::path old_choice = choices / ".y.json.0123456789abcdef.tmp";
  ASSERT_TRUE(write_file_atomically(old_choice, "half").ok());
  set_age(old_choice, std::chrono::hours(2));
  // A running writer's file is nobody's fault.
  std::vector<std::string> bad;
  for (const VerifiedFile& file : ArtifactStore(user_only(), log()).verify()) {
    if (!file.problem.empty()) bad.push_back(file.path);
  }
  EXPECT_THAT(bad, ::testing::UnorderedElementsAre(old_file.native(), old_choice.native()));
  fs::remove(files_of(key(1)).metadata);  // as a writer killed 39 hours ago would have left it
  const PruneReport report = ArtifactStore(user_only(), log()).prune({});
  EXPECT_EQ(report.leftovers, 3);
  EXPECT_FALSE(fs::exists(old_choice));
  EXPECT_FALSE(fs::exists(old_file));
  EXPECT_TRUE(fs::exists(new_file));
  EXPECT_THAT(present(), ::testing::ElementsAre(0, 2, 3));
  EXPECT_FALSE(fs::exists(files_of(key(1)).cubin));
}

TEST_F(PruneTest, ListTellsWhatThereIs) {
  const auto all = ArtifactStore(user_only(), log()).list();
  ASSERT_EQ(all.size(), 4u);
  for (const StoredArtifact& entry : all) {
    EXPECT_EQ(entry.metadata.key.spec, sample_key().spec);
    EXPECT_GT(entry.bytes, 10000u);
    EXPECT_GT(entry.last_used, 0);
  }
  constexpr int64_t kFar = 9'246'182'400;  // 2263-01-01: more nanoseconds than 64 bits hold
  const timespec times[2] = {{0, UTIME_OMIT}, {kFar, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, files_of(key(0)).metadata.c_str(), times, 0), 0);
  const auto later = ArtifactStore(user_only(), log()).list();
  EXPECT_EQ(std::count_if(later.begin(), later.end(), [](const auto& entry) { return entry.last_used == kFar; }), 1);
}

TEST_F(PruneTest, VerifyReportsEachEntry) {
  ASSERT_TRUE(write_file_atomically(files_of(key(0)).cubin, "bad").ok());
  ASSERT_TRUE(write_file_atomically(path("user/v1/sm_90a/notes.txt"), "mine").ok());
  int good = 0;
  std::vector<std::string> problems;
  for (const VerifiedFile& file : ArtifactStore(user_only(), log()).verify()) {
    if (file.problem.empty())
      ++good;
    else
      problems.push_back(file.problem);
  }
  EXPECT_EQ(good, 3);
  EXPECT_THAT(problems, ::testing::UnorderedElementsAre(HasSubstr("3 bytes"), HasSubstr("not a file of the cache")));
}

TEST_F(ArtifactStoreTest, AFolderThatIsRemovedDuringAWriteIsMadeAnew) {
  const CacheTree tree(path("user"), Trust::kOwn, log());
  int removals = 1, writes = 0;
  const auto write = [&](const Folder& folder) {
    if (++writes <= removals) fs::remove_all(path("user"));
    return folder.write("file", "bytes");
  };
  EXPECT_TRUE(tree.change("v1/choices", write).ok());
  EXPECT_EQ(writes, 2);
  EXPECT_TRUE(fs::exists(path("user/v1/choices/file")));
  EXPECT_EQ(events("directory_not_writable"), 0);
  removals = 1000;
  EXPECT_EQ(tree.change("v1/choices", write).code(), Code::kNotFound);
  EXPECT_LT(writes, 20);
  EXPECT_EQ(events("directory_not_writable"), 1);
}

TEST_F(ArtifactStoreTest, WhatOthersRemoveAndReplaceMeanwhileIsNotDamaged) {
  std::atomic<bool> done = false;
  std::thread others([&] {
    while (!done) {
      ArtifactStore store(user_only(), Log());
      store.put(sample_key(), kCubin, sample_info());
      ArtifactStore(user_only(), Log()).prune({.max_bytes = 1, .nvrtc = {}});
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  std::set<std::string> problems;
  while (std::chrono::steady_clock::now() < end) {
    for (const VerifiedFile& file : ArtifactStore(user_only(), Log()).verify()) problems.insert(file.problem);
  }
  done = true;
  others.join();
  problems.erase("");
  EXPECT_THAT(problems, IsEmpty());
}

}  // namespace
}  // namespace hstujit
