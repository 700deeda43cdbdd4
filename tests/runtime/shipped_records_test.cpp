// Tuning records that were installed with the library, behind those of the user.
#include "runtime/engine/shipped_records.h"

#include <algorithm>

#include "autotune_cache/store/directory_layer.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/files.h"
#include "compiler/support/read_limits.h"
#include "runtime/dispatch/kernel_choice.h"
#include "tests/paths.h"
#include "tests/runtime/tuner_fixture.h"

namespace hstujit::test {
namespace {

// How many lines the .jsonl files of a folder have together.
size_t lines_of(const std::string& folder) {
  size_t lines = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".jsonl") continue;
    const Result<std::string> text = read_file(file.path(), kMaxRecordBytes);
    lines += text.ok() ? std::ranges::count(*text, '\n') : 0;
  }
  return lines;
}

TEST_F(TunerTest, ShippedRecordsAreTheLastThatALookupTries) {
  takes(2, 0.5);
  ASSERT_TRUE(tune().ok());
  records_ = cache_dir();
  values_["HSTUJIT_CACHE_DIR"] = (folder_->path() / "user").string();
  const auto choose = [&] {
    const auto engine = make_engine();
    return *choose_kernel(*engine, *problem_.spec, problem_.direction, problem_.device, 1024);
  };
  EXPECT_TRUE(choose().tuned);
  EXPECT_EQ(choose().config, space_[2].config);
  const auto engine = make_engine();
  EXPECT_THAT(engine->kernels().store().directories().in_order(), ::testing::ElementsAre(values_["HSTUJIT_CACHE_DIR"]))
      << "they hold no cubins";
  EXPECT_EQ(doctor(*engine)["cache"].back()["path"], records_);
  EXPECT_EQ(doctor(*engine)["cache"].back()["role"], "shipped");
  records_ = (folder_->path() / "absent").string();
  EXPECT_FALSE(choose().tuned) << "a folder that is not there is no failure";
}

TEST_F(TunerTest, ARefusedWinnerHidesNoneOfALaterLayer) {
  takes(2, 0.5);
  ASSERT_TRUE(tune().ok());
  records_ = cache_dir();
  values_["HSTUJIT_CACHE_DIR"] = (folder_->path() / "user").string();
  TuningRecord refused;
  refused.key = tuning_key(*problem_.spec, problem_.direction, problem_.device, 1024);
  refused.workload = "batch";
  refused.timed = {{R"({"skeleton": "of another library"})", "batch", "s", 1, 0}};
  TuningDatabase user(CacheDirectories{.user = values_["HSTUJIT_CACHE_DIR"], .read_only = {}}, Log());
  ASSERT_TRUE(user.add(refused).ok());
  const auto choice = choose_kernel(*make_engine(), *problem_.spec, problem_.direction, problem_.device, 1024);
  ASSERT_TRUE(choice.ok());
  EXPECT_TRUE(choice->tuned);
  EXPECT_EQ(choice->config, space_[2].config);
}

TEST(ShippedRecords, AreFoundFromTheFolderOfTheLibrary) {
  const auto root = TempDir::create();
  ASSERT_TRUE(root.ok());
  const std::filesystem::path library = root->path() / "a" / "b" / "lib";
  std::filesystem::create_directories(library);
  EXPECT_EQ(shipped_records(library), "");
  std::filesystem::create_directories(library / kRecordsFromLibrary);
  EXPECT_EQ(shipped_records(library), std::filesystem::canonical(library / kRecordsFromLibrary));
  EXPECT_EQ(shipped_records(""), "");
  EXPECT_EQ(shipped_records(), "") << "a build tree has none";
}

// The records of autotune_cache/shipped are of keys that this library asks for, and it can run what they name.
TEST_F(RuntimeTest, EveryRecordOfTheRepositoryIsUsed) {
  records_ = binary_path("/records");
  const auto engine = make_engine();
  const auto records = DirectoryLayer(records_, false, Trust::kAll, Log()).records();
  EXPECT_EQ(records.size(), lines_of(source_path("/autotune_cache/shipped")));
  for (const StoredRecord& stored : records) {
    const TuningKey& key = stored.record.key;
    SCOPED_TRACE(stored.digest);
    const auto spec = parse_op_spec(nlohmann::ordered_json::parse(key.spec), "spec");
    ASSERT_TRUE(spec.ok()) << spec.status().message();
    const auto device = known_device(key.device);
    ASSERT_TRUE(device.ok()) << device.status().message();
    const Direction direction = key.direction == "forward" ? Direction::kForward : Direction::kBackward;
    const ProblemBucket bucket{key.bucket, key.batch_class};
    const Restriction restriction{.deterministic = key.deterministic};
    EXPECT_EQ(tuning_key(**spec, direction, *device, bucket, restriction), key);
    const auto choice = choose_kernel(*engine, **spec, direction, *device, bucket, restriction);
    ASSERT_TRUE(choice.ok()) << choice.status().message();
    EXPECT_TRUE(choice->tuned) << choice->why;
    EXPECT_TRUE(stored.record.winner == key_text(choice->config)) << stored.record.winner.text();
  }
}

}  // namespace
}  // namespace hstujit::test
