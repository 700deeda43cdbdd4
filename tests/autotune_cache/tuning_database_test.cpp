// Tuning records in the layers of a cache: which is found, merged, kept and verified.
#include "autotune_cache/store/tuning_database.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cache_fixture.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string path_of(const std::string& root) {
  const std::string digest = tuning_digest(sample_tuning_key());
  return root + "/v1/tuning/" + digest.substr(0, 2) + "/" + digest + ".json";
}

using TuningDatabaseTest = CacheTest;

TEST_F(TuningDatabaseTest, SaysWhatItCouldNotKeepUntilItHas) {
  const TuningRecord record = sample_record({{sample_config(64), kWorkload, "s", 20, 1}});
  TuningDatabase database(CacheDirectories{.user = path("user"), .read_only = {}}, log());
  EXPECT_EQ(database.not_kept().entries, 0);
  {
    std::ofstream(path("user")) << "no folder";
  }
  ASSERT_TRUE(database.add(record).ok());
  EXPECT_EQ(database.not_kept().entries, 1);
  EXPECT_THAT(database.not_kept().reason, HasSubstr(path("user")));
  fs::remove(path("user"));
  ASSERT_TRUE(database.add(record).ok());
  EXPECT_EQ(database.not_kept().entries, 0);
  TuningDatabase none(CacheDirectories{.user = {}, .read_only = {path("user")}}, log());
  ASSERT_TRUE(none.add(sample_record({{sample_config(64), kWorkload, "s", 10, 1}})).ok());
  EXPECT_EQ(none.not_kept().reason,
            "there is no cache directory: HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are all unset; set "
            "HSTUJIT_CACHE_DIR");
}

TEST_F(TuningDatabaseTest, AddsAndFinds) {
  TuningDatabase database(user_only(), log());
  EXPECT_FALSE(database.find(sample_tuning_key()).has_value());
  ASSERT_TRUE(database.add(sample_record({{sample_config(64), kWorkload, "s1", 20, 1}})).ok());
  const auto merged = database.add(sample_record({{sample_config(128), kWorkload, "s2", 10, 1}}));
  ASSERT_TRUE(merged.ok());
  TuningDatabase again(user_only(), log());
  const auto found = again.find(sample_tuning_key());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(*found, *merged);
  EXPECT_EQ(found->timed.size(), 2u);
  EXPECT_EQ(found->winner, sample_config(128));
  EXPECT_EQ(again.list().size(), 1u);
}

TEST_F(TuningDatabaseTest, ReadOnlyRecordsAreTheBaseOfTheUsers) {
  {
    ASSERT_TRUE(TuningDatabase(CacheDirectories{.user = path("shipped"), .read_only = {}}, log())
                    .add(sample_record({{sample_config(64), kWorkload, "s1", 20, 1}}))
                    .ok());
  }
  TuningDatabase database(CacheDirectories{.user = path("user"), .read_only = {path("shipped")}}, log());
  EXPECT_EQ(database.find(sample_tuning_key())->winner, sample_config(64));
  ASSERT_TRUE(database.add(sample_record({{sample_config(128), kWorkload, "s2", 10, 1}})).ok());
  EXPECT_EQ(database.find(sample_tuning_key())->timed.size(), 2u);
  EXPECT_EQ(TuningDatabase(CacheDirectories{.user = path("shipped"), .read_only = {}}, log())
                .find(sample_tuning_key())
                ->timed.size(),
            1u);
}

TEST_F(TuningDatabaseTest, ARecordThatIsOfNoUseHidesNoneOfALaterLayer) {
  const auto add = [&](const char* directory, int block_m) {
    TuningDatabase database(CacheDirectories{.user = path(directory), .read_only = {}}, log());
    ASSERT_TRUE(database.add(sample_record({{sample_config(block_m), kWorkload, "s", 10, 1}})).ok());
  };
  for (const auto& [directory, block_m] : {std::pair("user", 1), std::pair("bad", 2), std::pair("shipped", 3)})
    add(directory, block_m);
  ASSERT_TRUE(write_file_atomically(path_of(path("bad")), "{}").ok());
  TuningDatabase database(CacheDirectories{.user = path("user"), .read_only = {path("bad"), path("shipped")}}, log());
  std::vector<RecordedConfig> offered;
  const auto found = database.find(sample_tuning_key(), [&](const TuningRecord& record) {
    offered.push_back(record.winner);
    return record.winner == sample_config(3);
  });
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->winner, sample_config(3));
  EXPECT_EQ(offered.size(), 2u) << "the user's, then the shipped one; the bad one is no record";
  EXPECT_EQ(events("bad_record"), 1);
  EXPECT_FALSE(database.find(sample_tuning_key(), [](const TuningRecord&) { return false; }).has_value());
}

TEST_F(TuningDatabaseTest, DamagedRecordsAreLoggedMissesAndRepaired) {
  const std::string file = path_of(path("user"));
  const TuningRecord record = sample_record({{sample_config(64), kWorkload, "s1", 20, 1}});
  const std::string sound = *format_record(record);
  std::string flipped = sound;
  flipped[flipped.find("20.0")] = '1';
  for (const std::string& text : {std::string(), sound.substr(0, sound.size() / 2), flipped, std::string("{}")}) {
    lines_.clear();
    ASSERT_TRUE(make_directories(fs::path(file).parent_path()).ok());
    ASSERT_TRUE(write_file_atomically(file, text).ok());
    TuningDatabase database(user_only(), log());
    EXPECT_FALSE(database.find(sample_tuning_key()).has_value());
    EXPECT_FALSE(database.find(sample_tuning_key()).has_value());
    EXPECT_EQ(events("bad_record"), 1);
    ASSERT_TRUE(database.add(record).ok());
    EXPECT_TRUE(database.find(sample_tuning_key()).has_value());
  }
  fs::remove(file);
  ASSERT_TRUE(make_directories(file).ok());
  TuningDatabase database(user_only(), log());
  EXPECT_FALSE(database.find(sample_tuning_key()).has_value());
  ASSERT_TRUE(database.add(record).ok());
  EXPECT_TRUE(database.find(sample_tuning_key()).has_value());
}

TEST_F(TuningDatabaseTest, VerifyReadsRecords) {
  TuningDatabase database(user_only(), log());
  ASSERT_TRUE(database.add(sample_record({{sample_config(1), kWorkload, "s", 10, 1}})).ok());
  const auto problems = [&] {
    std::vector<std::string> all;
    for (const VerifiedFile& file : gather(database.layers(), &verify_layer)) all.push_back(file.problem);
    return all;
  };
  EXPECT_THAT(problems(), ::testing::ElementsAre(""));
  const std::string text = *whole_file(path_of(path("user")));
  ASSERT_TRUE(write_file_atomically(path_of(path("user")), text.substr(0, text.size() / 2)).ok());
  EXPECT_THAT(problems(), ::testing::ElementsAre(HasSubstr("it must be one complete JSON object")));
  const fs::path folder = fs::path(path_of(path("user"))).parent_path();
  const std::string digest = tuning_digest(sample_tuning_key());
  ASSERT_TRUE(write_file_atomically(folder / "notes.txt", "mine").ok());
  ASSERT_TRUE(write_file_atomically(folder.parent_path() / (digest + ".json"), text).ok());
  EXPECT_THAT(problems(),
              ::testing::UnorderedElementsAre(HasSubstr("it must be one complete JSON object"),
                                              HasSubstr("not a file of the cache"), HasSubstr("in the wrong folder")));
}

TEST_F(TuningDatabaseTest, WithoutADirectoryTheMergeStillCounts) {
  ASSERT_TRUE(write_file_atomically(path("user"), "a file").ok());
  for (const CacheDirectories& directories : {CacheDirectories{}, user_only()}) {
    TuningDatabase database(directories, log());
    const auto merged = database.add(sample_record({{sample_config(64), kWorkload, "s1", 20, 1}}));
    ASSERT_TRUE(merged.ok());
    EXPECT_EQ(merged->winner, sample_config(64));
  }
  EXPECT_EQ(events("directory_not_used"), 1);
  EXPECT_EQ(events("directory_not_writable"), 0);
}

TEST_F(TuningDatabaseTest, ProcessesAddToOneRecord) {
  constexpr int kProcesses = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      TuningDatabase database(user_only(), Log());
      ::_exit(database.add(sample_record({{sample_config(i), kWorkload, "s", 10.0 + i, 0}})).ok() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto found = TuningDatabase(user_only(), log()).find(sample_tuning_key());
  ASSERT_TRUE(found.has_value());
  for (int i = 0; i < kProcesses; ++i) {
    const TimedCandidate* timing = found->timing(sample_config(i));
    ASSERT_NE(timing, nullptr) << "the update of process " << i << " is lost";
    EXPECT_EQ(timing->median_us, 10.0 + i);
  }
  EXPECT_EQ(events("bad_record"), 0);
}

}  // namespace
}  // namespace hstujit
