// Entries that would take a process's memory or its time: a logged miss as any other, and repaired by the next put.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "autotune_cache/bundle/bundle.h"
#include "autotune_cache/bundle/tar.h"
#include "autotune_cache/files/artifact_metadata.h"
#include "autotune_cache/store/bundle_layer.h"
#include "autotune_cache/store/tuning_database.h"
#include "cache_fixture.h"
#include "compiler/support/files.h"
#include "compiler/support/hash.h"
#include "compiler/support/read_limits.h"
#include "tests/autotune_cache/zstd_frames.h"
#include "tests/support/little_memory.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

std::string deep_json() { return std::string(80'000, '[') + std::string(80'000, ']'); }

void replace(const fs::path& path, const std::string& bytes) { ASSERT_TRUE(write_file_atomically(path, bytes).ok()); }

// Sparse: no bytes on the disk.
void make_large(const fs::path& path, uint64_t bytes) {
  replace(path, "");
  fs::resize_file(path, bytes);
}

void make_pipe(const fs::path& path) {
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);
}

class HarmfulEntryTest : public CacheTest {
 protected:
  void SetUp() override {
    CacheTest::SetUp();
    ASSERT_TRUE(ArtifactStore(user_only(), log()).put(sample_key(), kCubin, sample_info()));
    ASSERT_TRUE(TuningDatabase(user_only(), log()).add(kRecord).ok());
  }

  // The entry is a miss that is logged and can be replaced.
  void expect_repairable_miss(const std::string& what) {
    ArtifactStore store(user_only(), log());
    EXPECT_FALSE(store.find(sample_key()).has_value()) << what;
    EXPECT_TRUE(store.put(sample_key(), kCubin, sample_info())) << what;
    EXPECT_TRUE(store.find(sample_key()).has_value()) << what;
  }

  fs::path record() const { return record_file(path("user"), tuning_digest(kRecord.key)); }

  const std::string kCubin = cubin_of("the bytes of a cubin");
  const TuningRecord kRecord = sample_record({{sample_config(64), kWorkload, "s", 10, 1}});
  static constexpr uint64_t kTerabyte = uint64_t{1} << 40;
};

TEST_F(HarmfulEntryTest, DeepNestingIsAMiss) {
  replace(files_of(sample_key()).metadata, deep_json());
  expect_repairable_miss("metadata");
  replace(record(), deep_json());
  EXPECT_FALSE(TuningDatabase(user_only(), log()).find(kRecord.key).has_value());
  EXPECT_TRUE(TuningDatabase(user_only(), log()).add(kRecord).ok());
  EXPECT_TRUE(TuningDatabase(user_only(), log()).find(kRecord.key).has_value());
}

// Texts within an entry are parsed, too: by lists, reports and comparisons.
TEST_F(HarmfulEntryTest, DeepNestingWithinTheTextsOfAnEntryHarmsNobody) {
  ArtifactKey key = sample_key();
  key.spec = deep_json();
  ArtifactInfo info = sample_info();
  info.resources = deep_json();
  ArtifactStore store(user_only(), log());
  ASSERT_TRUE(store.put(key, kCubin, info));
  EXPECT_EQ(store.find(key)->info.resources, "{}");
  EXPECT_EQ(store.list().size(), 2u);
  EXPECT_NE(RecordedConfig(deep_json()), RecordedConfig(deep_json() + " "));
  TuningRecord record = kRecord;
  record.timed[0].config = deep_json();
  EXPECT_EQ(TuningDatabase(user_only(), log()).add(record).status().code(), Code::kInvalidArgument);
}

TEST_F(HarmfulEntryTest, FilesOfAnySizeAreAMiss) {
  const ArtifactFiles files = files_of(sample_key());
  for (const fs::path& file : {files.metadata, files.cubin}) {
    make_large(file, kTerabyte);
    expect_repairable_miss(file.native());
  }
  make_large(record(), kTerabyte);
  EXPECT_FALSE(TuningDatabase(user_only(), log()).find(kRecord.key).has_value());
  EXPECT_TRUE(TuningDatabase(user_only(), log()).list().empty());
  EXPECT_EQ(events("bad_record"), 1);
}

TEST_F(HarmfulEntryTest, PipesAreAMiss) {
  const ArtifactFiles files = files_of(sample_key());
  for (const fs::path& file : {files.metadata, files.cubin}) {
    make_pipe(file);
    expect_repairable_miss(file.native());
  }
  make_pipe(record());
  EXPECT_FALSE(TuningDatabase(user_only(), log()).find(kRecord.key).has_value());
}

TEST_F(HarmfulEntryTest, WhatThereIsNoMemoryForIsAMiss) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer needs all of the address space";
  const ArtifactFiles files = files_of(sample_key());
  const uint64_t size = kMaxCubinBytes;
  replace(files.metadata, *format_metadata({sample_key(), sample_info(), size, sha256_hex("")}));
  make_large(files.cubin, size);
  EXPECT_TRUE(with_little_memory([&] {
    ArtifactStore store(user_only(), log());
    return !store.find(sample_key()).has_value() && events("bad_entry") == 1 &&
           store.put(sample_key(), kCubin, sample_info()) && store.find(sample_key()).has_value();
  }));
  // A text whose values take many times its bytes.
  std::string lists = "[[]";
  while (lists.size() < size_t{20} << 20) lists += ",[]";
  replace(record(), lists + "]");
  EXPECT_TRUE(with_little_memory(
      [&] { return !TuningDatabase(user_only(), log()).find(kRecord.key).has_value() && events("bad_record") == 1; }));
}

using HarmfulBundleTest = CacheTest;

// It is not told damaged.
TEST_F(HarmfulBundleTest, WhatThereIsNoMemoryForIsUnread) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer needs all of the address space";
  // A zstd frame with a window of 128 MiB, which is empty.
  ASSERT_TRUE(write_file_atomically(path("wide"), std::string("\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00", 9)).ok());
  EXPECT_TRUE(with_little_memory([&] {
    const Status status = BundleLayer(path("wide"), Trust::kAll, linked_decoder, log()).health();
    return status.code() == Code::kOutOfMemory &&
           status.message().ends_with("cannot be read: there is no memory for its zstd frame");
  }));
}

TEST_F(HarmfulBundleTest, ADeepManifestIsRefused) {
  std::string tar;
  ASSERT_TRUE(append_to_tar(tar, "hstujit-bundle.json", deep_json()).ok());
  finish_tar(tar);
  EXPECT_THAT(Bundle::unpack(tar, linked_decoder).status().message(),
              HasSubstr("lists and objects are nested more than 64 deep"));
}

TEST_F(HarmfulBundleTest, ALargeOrEndlessFileIsRefused) {
  make_large(path("bundle"), kMaxBundleBytes + 1);
  EXPECT_THAT(BundleLayer(path("bundle"), Trust::kAll, linked_decoder, log()).health().message(),
              HasSubstr("it has more than 4294967296 bytes"));
  // Gigabytes that are no bundle are known by their first bytes: there is no memory for the others here.
  make_large(path("zeros"), kMaxBundleBytes);
  ASSERT_TRUE(write_file_atomically(path("grown"), pack_bundle({{"v1/tuning/x", "y"}})->bytes).ok());
  std::filesystem::resize_file(path("grown"), kMaxBundleBytes);
  for (const Trust trust : {Trust::kAll, Trust::kOwn}) {
    const auto says = [&](const std::string& name, const std::string& sentence) {
      return BundleLayer(path(name), trust, linked_decoder, log()).health().message().find(sentence) !=
             std::string::npos;
    };
    EXPECT_TRUE(
        with_little_memory([&] { return says("zeros", "byte 0 of its tar archive there is no ustar header"); }));
    EXPECT_TRUE(with_little_memory([&] { return says("grown", "its contents have 4294966272 bytes"); }));
  }
  EXPECT_THAT(BundleLayer("/dev/zero", Trust::kAll, linked_decoder, log()).health().message(),
              HasSubstr("it is a device, no regular file"));
  make_pipe(path("pipe"));
  EXPECT_THAT(BundleLayer(path("pipe"), Trust::kAll, linked_decoder, log()).health().message(),
              HasSubstr("it is a pipe, no regular file"));
}

}  // namespace
}  // namespace hstujit
