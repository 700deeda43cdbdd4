// Every way to damage an entry: a logged miss, repaired by the next put, and never wrong bytes.
#include <gtest/gtest.h>

#include <functional>

#include "autotune_cache/files/artifact_metadata.h"
#include "cache_fixture.h"
#include "compiler/support/hash.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

const std::string kSoundCubin = cubin_of("the bytes of a cubin");

void overwrite(const fs::path& path, const std::string& bytes) { ASSERT_TRUE(write_file_atomically(path, bytes).ok()); }

void replace_by_folder(const fs::path& path) {
  fs::remove(path);
  ASSERT_TRUE(make_directories(path / "inside").ok());
}

struct Damage {
  const char* name;
  std::function<void(const ArtifactFiles&)> inflict;
};

std::string sound_metadata(uint64_t size, const std::string& config, const std::string& cubin = kSoundCubin) {
  return *format_metadata({sample_key(config), sample_info(), size, sha256_hex(cubin)});
}

const std::string kConfig = sample_key().config;

const Damage kDamages[] = {
    {"TruncatedCubin", [](const ArtifactFiles& f) { overwrite(f.cubin, kSoundCubin.substr(0, 7)); }},
    {"LongerCubin", [](const ArtifactFiles& f) { overwrite(f.cubin, kSoundCubin + "x"); }},
    {"FlippedCubin", [](const ArtifactFiles& f) { overwrite(f.cubin, cubin_of("The bytes of a cubin")); }},
    {"EmptyCubin", [](const ArtifactFiles& f) { overwrite(f.cubin, ""); }},
    {"MissingCubin", [](const ArtifactFiles& f) { fs::remove(f.cubin); }},
    {"FolderForCubin", [](const ArtifactFiles& f) { replace_by_folder(f.cubin); }},
    {"EmptyMetadata", [](const ArtifactFiles& f) { overwrite(f.metadata, ""); }},
    {"TruncatedMetadata",
     [](const ArtifactFiles& f) {
       const std::string text = *whole_file(f.metadata);
       overwrite(f.metadata, text.substr(0, text.size() / 2));
     }},
    {"OtherJson", [](const ArtifactFiles& f) { overwrite(f.metadata, "[1, 2]"); }},
    {"ForeignJson", [](const ArtifactFiles& f) { overwrite(f.metadata, R"({"format": "something else"})"); }},
    {"MetadataOfAnotherKey",
     [](const ArtifactFiles& f) { overwrite(f.metadata, sound_metadata(kSoundCubin.size(), R"({"block_m":64})")); }},
    {"WrongLength",
     [](const ArtifactFiles& f) { overwrite(f.metadata, sound_metadata(kSoundCubin.size() + 1, kConfig)); }},
    // Whole by length and checksum.
    {"ConsistentEmptyCubin",
     [](const ArtifactFiles& f) {
       overwrite(f.cubin, "");
       overwrite(f.metadata, sound_metadata(0, kConfig, ""));
     }},
    {"ConsistentText",
     [](const ArtifactFiles& f) {
       const std::string text(100, 'x');
       overwrite(f.cubin, text);
       overwrite(f.metadata, sound_metadata(text.size(), kConfig, text));
     }},
    {"FolderForMetadata", [](const ArtifactFiles& f) { replace_by_folder(f.metadata); }},
};

class DamagedEntryTest : public CacheTest, public ::testing::WithParamInterface<Damage> {};

TEST_P(DamagedEntryTest, IsALoggedMissAndRepaired) {
  {
    ASSERT_TRUE(ArtifactStore(user_only(), log()).put(sample_key(), kSoundCubin, sample_info()));
  }
  GetParam().inflict(files_of(sample_key()));

  ArtifactStore store(user_only(), log());
  EXPECT_FALSE(store.find(sample_key()).has_value());
  EXPECT_FALSE(store.find(sample_key()).has_value());
  EXPECT_EQ(events("bad_entry"), 1);  // one warning, not one per look
  bool reported = false;
  for (const VerifiedFile& file : store.verify()) reported = reported || !file.problem.empty();
  EXPECT_TRUE(reported);

  EXPECT_TRUE(store.put(sample_key(), kSoundCubin, sample_info()));
  const auto repaired = store.find(sample_key());
  ASSERT_TRUE(repaired.has_value());
  EXPECT_EQ(repaired->cubin, kSoundCubin);
}

INSTANTIATE_TEST_SUITE_P(All, DamagedEntryTest, ::testing::ValuesIn(kDamages),
                         [](const auto& info) { return std::string(info.param.name); });

using SystemFailureTest = CacheTest;

// Nothing is known of an entry that the system does not let a process read, and so it is not called damaged.
TEST_F(SystemFailureTest, IsNoDamage) {
  ASSERT_TRUE(ArtifactStore(user_only(), log()).put(sample_key(), kSoundCubin, sample_info()));
  EXPECT_TRUE(without_open_files([&] {
    ArtifactStore store(user_only(), Log());
    const auto files = store.verify();
    const auto listed = gather_whole(store.layers(), &artifacts_of);
    const Status found = store.layers().front()->find_artifact("sm_90a", *artifact_digest(sample_key())).status();
    return !files.empty() && files.front().unread && is_system_failure(listed.status()) && is_system_failure(found) &&
           !store.find(sample_key());
  }));
  EXPECT_EQ(ArtifactStore(user_only(), log()).verify().front().problem, "");
}

using MetadataTest = CacheTest;

TEST_F(MetadataTest, ResourcesAreNumbersThatAKernelCanHave) {
  const auto status_of = [](const std::string& resources) {
    ArtifactInfo info = sample_info();
    info.resources = resources;
    const std::string text = *format_metadata({sample_key(), info, kSoundCubin.size(), sha256_hex(kSoundCubin)});
    return parse_metadata(text, *artifact_digest(sample_key())).status();
  };
  EXPECT_TRUE(status_of(R"({"registers": 255, "spill_load_bytes": 0, "compile_ms": 1.5, "nvrtc": "13.0"})").ok());
  for (const char* resources : {R"({"registers": -1})", R"({"spill_load_bytes": 9223372036854775807})",
                                R"({"spill_store_bytes": 1e308})", R"({"stack_bytes": true})",
                                R"({"static_shared_bytes": []})", R"({"compile_ms": -5})", R"({"registers": 1.5})"}) {
    EXPECT_EQ(status_of(resources).code(), Code::kIo) << resources;
    EXPECT_NE(status_of(resources).message().find("its resources say that "), std::string::npos) << resources;
  }
  for (const auto& [resources, sentence] :
       {std::pair(R"({"nvrtc": [1]})", "its resources: nvrtc is [1]; it must be a string"),
        std::pair(R"({"warnings": true})", "its resources: warnings is true; it must be a list"),
        std::pair(R"({"rejects": {}})", "its resources: rejects is {}; it must be a list"),
        std::pair(R"({"nvrtc": "12.9"})", R"(its resources are of NVRTC "12.9", and its nvrtc is "13.0")")})
    EXPECT_EQ(status_of(resources).message(), sentence);
}

TEST_F(MetadataTest, ItsTextsAreOnesThatPeopleRead) {
  const auto status_of = [](std::string ArtifactInfo::* text, size_t bytes) {
    ArtifactInfo info = sample_info();
    info.*text = std::string(bytes, 'x');
    return parse_metadata(*format_metadata({sample_key(), info, kSoundCubin.size(), sha256_hex(kSoundCubin)}),
                          *artifact_digest(sample_key()))
        .status();
  };
  for (const auto text : {&ArtifactInfo::kernel, &ArtifactInfo::nvrtc, &ArtifactInfo::library}) {
    EXPECT_EQ(status_of(text, 256).message(), "");
    EXPECT_NE(status_of(text, 257).message().find(" has 257 bytes; allowed: at most 256"), std::string::npos);
  }
}

using FlippedMetadataTest = CacheTest;

TEST_F(FlippedMetadataTest, NoFlippedBitIsBelieved) {
  {
    ASSERT_TRUE(ArtifactStore(user_only(), log()).put(sample_key(), kSoundCubin, sample_info()));
  }
  const ArtifactFiles files = files_of(sample_key());
  const std::string digest = *artifact_digest(sample_key());
  const std::string text = *whole_file(files.metadata);
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      const auto metadata = parse_metadata(flipped, digest);
      if (!metadata.ok()) continue;
      // Blanks between members may differ; what is said may not.
      EXPECT_EQ(metadata->info, sample_info()) << "byte " << i << " bit " << bit;
      EXPECT_EQ(metadata->key, sample_key());
      EXPECT_EQ(metadata->sha256, sha256_hex(kSoundCubin));
    }
  }
}

}  // namespace
}  // namespace hstujit
