// Tuning records that were installed with the library, behind those of the user.
#include "runtime/shipped_records.h"

#include "tests/runtime/tuner_fixture.h"

namespace hstujit::test {
namespace {

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

}  // namespace
}  // namespace hstujit::test
