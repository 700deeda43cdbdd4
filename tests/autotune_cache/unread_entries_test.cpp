// Entries that the system fails to read, for want of memory or of open files: they may be good, and what would replace
// or remove them leaves them as they are.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <new>

#include "autotune_cache/bundle/bundle.h"
#include "autotune_cache/choice/choice_record.h"
#include "autotune_cache/store/bundle_transfer.h"
#include "cache_fixture.h"
#include "compiler/support/hash.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"
#include "tests/autotune_cache/large_record.h"
#include "tests/autotune_cache/zstd_frames.h"
#include "tests/support/little_memory.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class UnreadEntryTest : public CacheTest {
 protected:
  void SetUp() override {
    CacheTest::SetUp();
    if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer needs all of the address space";
  }

  ChoiceRecord choice(const std::string& config, bool exported) const {
    ChoiceRecord made;
    made.key = sample_tuning_key();
    made.generator = "g";
    made.config = config;
    made.exported = exported;
    return made;
  }
  std::string bundle_of(const std::map<std::string, std::string>& files) const {
    EXPECT_TRUE(write_file_atomically(path("bundle"), pack_bundle(files)->bytes).ok());
    return path("bundle");
  }
  Status import(const std::string& file) {
    ArtifactStore store(user_only(), log());
    TuningDatabase database(user_only(), log());
    return import_bundle(BundleLayer(file, Trust::kAll, linked_decoder, log()), store, database).status();
  }
};

class UnreadRecordTest : public UnreadEntryTest {
 protected:
  void SetUp() override {
    UnreadEntryTest::SetUp();
    fs::create_directories(record().parent_path());
    ASSERT_TRUE(write_file_atomically(record(), kLarge).ok());
  }

  fs::path record() const { return record_file(path("user"), tuning_digest(sample_tuning_key())); }

  const std::string kLarge = text_of_large_record(sample_tuning_key());
  const TuningRecord kSmall = sample_record({{sample_config(64), kWorkload, "s", 10, 1}});
};

TEST_F(UnreadRecordTest, ARecordStaysAndTheNewOneIsNotKept) {
  EXPECT_TRUE(with_little_memory([&] {
    TuningDatabase database(user_only(), log());
    const auto added = database.add(kSmall);
    return added.ok() && added->timed.size() == 1 && database.not_kept().entries == 1 &&
           database.not_kept().reason.find("there is no memory for") != std::string::npos && events("bad_record") == 1;
  }));
  EXPECT_TRUE(*whole_file(record()) == kLarge);
  EXPECT_TRUE(without_open_files([&] {
    TuningDatabase database(user_only(), log());
    return database.add(kSmall).ok() && database.not_kept().entries == 1;
  }));
  EXPECT_TRUE(*whole_file(record()) == kLarge);
}

TEST_F(UnreadRecordTest, AnImportLeavesItAndFails) {
  const std::string name = record_file(kNoRoot, tuning_digest(kSmall.key)).native();
  const std::string file = bundle_of({{name, *format_record(kSmall)}});
  EXPECT_TRUE(with_little_memory([&] {
    const Status status = import(file);
    return status.code() == Code::kOutOfMemory &&
           status.message().find("the tuning record " + tuning_digest(kSmall.key)) != std::string::npos &&
           status.message().find("cannot be read, and stays: there is no memory for") != std::string::npos;
  }));
  EXPECT_TRUE(*whole_file(record()) == kLarge);
  // Nor is a choice put before a winner that cannot be read.
  const std::string chosen = choice_file(kNoRoot, choice_digest(sample_tuning_key(), "g")).native();
  const std::string choices = bundle_of({{chosen, *format_choice(choice(sample_config(64), true))}});
  EXPECT_TRUE(with_little_memory([&] { return import(choices).code() == Code::kOutOfMemory; }));
  EXPECT_FALSE(fs::exists(fs::path(path("user")) / chosen));
}

TEST_F(UnreadRecordTest, ABundleIsNotImportedInPart) {
  fs::remove(record());
  const std::string file = bundle_of({{record_file(kNoRoot, tuning_digest(kSmall.key)).native(), kLarge}});
  EXPECT_TRUE(with_little_memory([&] {
    const CacheLayers layers = {std::make_shared<BundleLayer>(file, Trust::kAll, linked_decoder, log())};
    const auto listed = gather_whole(layers, &records_of);
    return import(file).code() == Code::kOutOfMemory && is_system_failure(listed.status()) &&
           verify_layer(*layers.front()).front().unread;
  }));
  EXPECT_FALSE(fs::exists(record()));
}

TEST_F(UnreadEntryTest, AnExportedChoiceStays) {
  std::string zeros = "[0";
  while (zeros.size() < kMaxChoiceBytes * 3 / 4) zeros += ",0";
  const ChoiceRecord exported = choice(R"({"zeros":)" + zeros + "]}", true);
  // In another process, whose memory is not this one's to take again.
  ASSERT_TRUE(with_little_memory(
      [&] {
        TuningDatabase(user_only(), log()).keep_choice(exported);
        return true;
      },
      size_t{1} << 30));
  const fs::path file = choice_file(path("user"), choice_digest(exported.key, "g"));
  const std::string before = *whole_file(file);
  constexpr size_t kLeft = size_t{4} << 20;  // enough for the text and not for its values
  EXPECT_TRUE(with_little_memory(
      [&] {
        // Takes what other tests of this program have freed, too.
        while (::operator new(kLeft, std::nothrow) != nullptr) {
        }
        TuningDatabase(user_only(), log()).drop_choice(exported.key, "g", true);
        TuningDatabase(user_only(), log()).note_choice(choice(sample_config(64), false));
        return events("bad_choice") == 1;
      },
      kLeft));
  ASSERT_TRUE(fs::exists(file));
  EXPECT_TRUE(*whole_file(file) == before);
}

TEST_F(UnreadEntryTest, AKernelThatLooksGoodStays) {
  const ArtifactFiles files = files_of(sample_key());
  const std::string cubin = cubin_of("the bytes of a cubin");
  ASSERT_TRUE(ArtifactStore(user_only(), log()).put(sample_key(), cubin, sample_info()));
  const size_t size = size_t{200} << 20;
  fs::resize_file(files.cubin, size);
  ASSERT_TRUE(write_file_atomically(files.metadata,
                                    *format_metadata({sample_key(), sample_info(), size, sha256_hex("unknown")}))
                  .ok());
  EXPECT_TRUE(
      with_little_memory([&] { return ArtifactStore(user_only(), log()).put(sample_key(), cubin, sample_info()); }));
  EXPECT_EQ(fs::file_size(files.cubin), size);
}

}  // namespace
}  // namespace hstujit
