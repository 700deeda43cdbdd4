// Every seed, and every input that a fuzzer has ever failed on, in every build.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <ostream>

#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"
#include "tests/paths.h"
#include "tests/support/whole_file.h"

namespace hstujit::fuzz {
namespace {

struct Target {
  const char* name;
  void (*run)(std::string_view);
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

class Corpus : public ::testing::TestWithParam<Target> {};

TEST_P(Corpus, KeepsEveryPromise) {
  limit_stack();
  size_t seeds = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(source_path("/tests/fuzz/corpus/") + std::string(GetParam().name))) {
    const auto seed = whole_file(file.path());
    ASSERT_TRUE(seed.ok()) << seed.status().message();
    std::printf("%s\n", file.path().filename().c_str());
    std::fflush(stdout);
    GetParam().run(*seed);
    ++seeds;
  }
  EXPECT_GE(seeds, 1U);
}

INSTANTIATE_TEST_SUITE_P(All, Corpus,
                         ::testing::Values(Target{"bundle", bundle}, Target{"cache_metadata", cache_metadata},
                                           Target{"checked_json", checked_json}, Target{"config", config},
                                           Target{"expression", expression}, Target{"frozen_choices", frozen_choices},
                                           Target{"recording", recording}, Target{"remote_url", remote_url},
                                           Target{"tar", tar}, Target{"tuning_record", tuning_record},
                                           Target{"worker_frames", worker_frames}),
                         [](const auto& info) { return std::string(info.param.name); });

// The promises themselves can be broken.
TEST(Promises, AreNoticed) {
  EXPECT_DEATH(expect(false, "two is one"), "broken promise: two is one");
  EXPECT_DEATH(expect_sentence(Status(Code::kIo, "")), "has a message");
  EXPECT_DEATH(expect_sentence(Status(Code::kIo, std::string(5000, 'a'))), "under 4 KB");
  EXPECT_DEATH(expect_sentence(Status(Code::kIo, "one\n\ntwo")), "no line of a message is empty");
  EXPECT_DEATH(expect_sentence(Status(Code::kIo, "a\x1b[1m")), "control characters");
  EXPECT_DEATH(expect_sentence(Status(Code::kIo, "a\xff")), "UTF-8");
  expect_sentence(Status(Code::kIo, "one thing\ncannot read \"größe\""));
}

}  // namespace
}  // namespace hstujit::fuzz
