#include "autotune_cache/files/cache_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cache_fixture.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;

TEST(CacheKeyTest, EachFieldChangesTheKey) {
  std::vector<ArtifactKey> keys(9, sample_key());
  keys[1].generator = "d2";
  keys[2].spec += " ";
  keys[3].direction = "backward";
  keys[4].config = R"({"block_m":64})";
  keys[5].options.push_back("-lineinfo");
  keys[6].options = {"--gpu-architecture=sm_90a--std=c++17"};
  keys[7].options = {"--std=c++17", "--gpu-architecture=sm_90a"};
  keys[8].arch = "sm_90";
  std::set<std::string> digests;
  for (const ArtifactKey& key : keys) {
    const auto digest = artifact_digest(key);
    ASSERT_TRUE(digest.ok()) << digest.status().message();
    EXPECT_TRUE(is_digest(*digest));
    digests.insert(*digest);
  }
  EXPECT_EQ(digests.size(), keys.size());
}

TEST(CacheKeyTest, TextCannotMoveBetweenFields) {
  ArtifactKey left = sample_key();
  ArtifactKey right = sample_key();
  // Moved in: g++ 12 warns about overlap, wrongly, where a literal is assigned.
  left.generator = std::string("ab");
  left.spec = std::string("c");
  right.generator = std::string("a");
  right.spec = std::string("bc");
  EXPECT_NE(*artifact_digest(left), *artifact_digest(right));
}

// The keys of a release are those of a bundle made by it: they change only with kArtifactSchema.
TEST(CacheKeyTest, IsThatOfTheSchema) {
  EXPECT_EQ(kArtifactSchema, 1);
  EXPECT_EQ(*artifact_digest(sample_key()), "6eec6ef76f7c7709dc76e18c10beec832309f1c3d9386b24facf135ed55f0145");
}

TEST(CacheKeyTest, RefusesWhatCannotBeAKey) {
  for (const char* arch : {"", "90a", "sm_", "tuning", "sm_9/0", "../sm_90", "sm_90 "}) {
    ArtifactKey key = sample_key();
    key.arch = arch;
    const auto digest = artifact_digest(key);
    ASSERT_FALSE(digest.ok()) << arch;
    EXPECT_EQ(digest.status().code(), Code::kInvalidArgument);
  }
  ArtifactKey key = sample_key();
  key.spec.clear();
  EXPECT_THAT(artifact_digest(key).status().message(), HasSubstr("spec"));
}

TEST(CacheKeyTest, DigestsAreLowerCaseHexadecimal) {
  EXPECT_TRUE(is_digest(std::string(64, 'a')));
  EXPECT_FALSE(is_digest(std::string(63, 'a')));
  EXPECT_FALSE(is_digest(std::string(64, 'A')));
  EXPECT_FALSE(is_digest(std::string(63, 'a') + "/"));
}

}  // namespace
}  // namespace hstujit
