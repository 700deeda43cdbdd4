// Anything in a cache may be removed or replaced at any time: by then a writer has done its part, and a reader finds
// nothing wrong.
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <thread>

#include "autotune_cache/store/bundle_transfer.h"
#include "autotune_cache/store/directory_layer.h"
#include "cache_fixture.h"
#include "tests/autotune_cache/zstd_frames.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNamedGenerator = "g1";

// A directory in which somebody else does something before every look-up.
class DisturbedLayer : public DirectoryLayer {
 public:
  DisturbedLayer(const std::string& path, std::function<void()> disturb)
      : DirectoryLayer(path, true, Trust::kOwn, Log()), disturb_(std::move(disturb)) {}

  Result<LoadedArtifact> find_artifact(std::string_view arch, std::string_view digest) const override {
    disturb_();
    return DirectoryLayer::find_artifact(arch, digest);
  }
  Result<TuningRecord> find_record(std::string_view digest) const override {
    disturb_();
    return DirectoryLayer::find_record(digest);
  }
  Result<ChoiceRecord> find_choice(std::string_view digest) const override {
    disturb_();
    return DirectoryLayer::find_choice(digest);
  }

 private:
  std::function<void()> disturb_;
};

class RemovedMeanwhileTest : public CacheTest {
 protected:
  CacheDirectories at(const std::string& name) const { return {.user = path(name), .read_only = {}}; }
  static ChoiceRecord choice(const std::string& op, int block_m) {
    return {sample_tuning_key(op), kNamedGenerator, sample_config(block_m), ChoiceSource::kHeuristic, "", {}, true};
  }
  static TuningRecord record(const std::string& op, double median) {
    return sample_record({{sample_config(64), kWorkload, "s", median, 1}}, sample_tuning_key(op));
  }
  // A bundle of two of each; its path.
  std::string bundle() {
    ArtifactStore store(at("origin"), log());
    TuningDatabase database(at("origin"), log());
    for (const char* config : {R"({"block_m":64})", R"({"block_m":128})"})
      EXPECT_TRUE(store.put(sample_key(config), cubin_of("64"), sample_info()));
    for (const char* op : {"hstu_attention", "layer_norm"}) {
      EXPECT_TRUE(database.add(record(op, 10)).ok());
      database.keep_choice(choice(op, 64));
    }
    const CacheLayers layers = open_layers(at("origin"), log());
    const auto exported = export_bundle(layers, {}, layers);
    EXPECT_TRUE(exported.ok()) << exported.status().message();
    EXPECT_TRUE(write_file_atomically(path("bundle"), exported->packed.bytes).ok());
    return path("bundle");
  }
  // Into a directory that is disturbed before import looks at it.
  Result<ImportReport> import(const std::string& file, const std::function<void()>& disturb) {
    ArtifactStore store(CacheLayers{std::make_shared<DisturbedLayer>(path("user"), disturb)}, log());
    TuningDatabase database(at("user"), log());
    return import_bundle(BundleLayer(file, Trust::kOwn, linked_decoder, log()), store, database);
  }
};

TEST_F(RemovedMeanwhileTest, WhatIsImportedMayBeRemovedAtOnce) {
  const std::string file = bundle();
  for (const char* removed : {"user/v1/choices", "user/v1", "user"}) {
    SCOPED_TRACE(removed);
    const auto report = import(file, [&] { fs::remove_all(path(removed)); });
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->new_choices, 2);
    EXPECT_EQ(report->records, 2);
    EXPECT_EQ(report->kernels, 2);
  }
}

TEST_F(RemovedMeanwhileTest, WhatIsImportedMayBeReplacedAtOnce) {
  const auto report = import(bundle(), [&] {
    TuningDatabase database(at("user"), Log());
    for (const char* op : {"hstu_attention", "layer_norm"}) {
      database.keep_choice(choice(op, 128));
      ASSERT_TRUE(database.add(record(op, 20)).ok());
    }
  });
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->kernels, 2);
}

TEST_F(RemovedMeanwhileTest, ExportTakesWhatIsThere) {
  bundle();
  const CacheLayers layers = {
      std::make_shared<DisturbedLayer>(path("origin"), [&] { fs::remove_all(path("origin")); })};
  const auto exported = export_bundle(layers, {}, layers);
  ASSERT_TRUE(exported.ok()) << exported.status().message();
  EXPECT_EQ(exported->kernels + exported->records + exported->choices, 0);
}

// A process that removes a folder is between the two files of an entry for a moment.
TEST_F(RemovedMeanwhileTest, AnEntryThatIsBeingRemovedIsNotDamaged) {
  const ArtifactFiles files = files_of(sample_key());
  bool good = false;
  for (int attempt = 0; attempt < 5 && !good; ++attempt) {  // the other thread may be late
    ASSERT_TRUE(ArtifactStore(user_only(), log()).put(sample_key(), cubin_of("64"), sample_info()));
    fs::remove(files.cubin);
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      fs::remove(files.metadata);
    });
    good = ArtifactStore(user_only(), log()).verify().empty();
    other.join();
  }
  EXPECT_TRUE(good);
  ASSERT_TRUE(ArtifactStore(user_only(), log()).put(sample_key(), cubin_of("64"), sample_info()));
  fs::remove(files.cubin);
  EXPECT_EQ(ArtifactStore(user_only(), log()).verify().size(), 1u) << "one that stays is named";
}

}  // namespace
}  // namespace hstujit
