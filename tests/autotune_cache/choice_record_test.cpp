// Choices: their files, what a look-up takes of them, and how they travel in bundles.
#include "autotune_cache/choice/choice_record.h"

#include <gmock/gmock.h>

#include <tuple>

#include "autotune_cache/files/checked_json.h"
#include "autotune_cache/store/bundle_transfer.h"
#include "autotune_cache/store/directory_layer.h"
#include "cache_fixture.h"
#include "compiler/support/read_limits.h"
#include "tests/autotune_cache/zstd_frames.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGenerator = "g1";

class ChoiceTest : public CacheTest {
 protected:
  CacheDirectories at(const std::string& name) const { return {.user = path(name), .read_only = {}}; }
  static ChoiceRecord choice(int block_m, ChoiceSource source = ChoiceSource::kHeuristic, bool exported = false) {
    return {sample_tuning_key(), kGenerator, sample_config(block_m), source, "", {}, exported};
  }
  static std::string digest() { return choice_digest(sample_tuning_key(), kGenerator); }
  static TuningRecord record(int block_m) {
    return sample_record({{sample_config(block_m), kWorkload, "s", 10, 1}}, sample_tuning_key());
  }

  // Finds what decides the key in these directories: "record <config>", "choice <config>" or "".
  std::string decision(const CacheDirectories& directories) {
    TuningDatabase database(directories, log());
    const auto decided = database.decide(
        sample_tuning_key(), kGenerator, [](const TuningRecord& record) { return !record.winner.empty(); },
        [](const ChoiceRecord&) { return true; });
    if (!decided) return "";
    return decided->record ? "record " + decided->record->winner.text() : "choice " + decided->choice->config.text();
  }

  // A bundle of what the directories hold, `shipped` records beside them; its path.
  std::string bundle(const CacheDirectories& directories, const std::string& shipped = "") {
    const CacheLayers layers = open_layers(directories, log());
    CacheLayers consulted = layers;
    if (!shipped.empty()) consulted.push_back(std::make_shared<DirectoryLayer>(shipped, false, Trust::kOwn, log()));
    const auto exported = export_bundle(layers, {}, consulted);
    EXPECT_TRUE(exported.ok()) << exported.status().message();
    EXPECT_TRUE(write_file_atomically(path("bundle"), exported->packed.bytes).ok());
    return path("bundle");
  }
  Result<ImportReport> import_into(const std::string& directory, const std::string& file) {
    ArtifactStore store(at(directory), log());
    TuningDatabase database(at(directory), log());
    return import_bundle(BundleLayer(file, Trust::kOwn, linked_decoder, log()), store, database);
  }
  void note(const std::string& directory, const ChoiceRecord& noted) {
    TuningDatabase(at(directory), log()).note_choice(noted);
  }
  void add(const std::string& directory, const TuningRecord& added) {
    ASSERT_TRUE(TuningDatabase(at(directory), log()).add(added).ok());
  }
  Result<ChoiceRecord> stored(const std::string& directory) const {
    return DirectoryLayer(path(directory), true, Trust::kOwn, Log()).find_choice(digest());
  }
};

TEST_F(ChoiceTest, AFileSaysAllOfIt) {
  ChoiceRecord whole = choice(64, ChoiceSource::kNearDevice, true);
  whole.device = "NVIDIA H200";
  whole.passed_over = {{sample_config(192), "spill", "8 bytes of registers spill to memory"}};
  whole.estimates = "m1";
  const auto text = format_choice(whole);
  ASSERT_TRUE(text.ok());
  const auto parsed = parse_choice(*text, digest());
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, whole);
  for (const ChoiceSource source :
       {ChoiceSource::kTuning, ChoiceSource::kNearDevice, ChoiceSource::kOtherHeads, ChoiceSource::kOtherSeed,
        ChoiceSource::kOtherGradients, ChoiceSource::kOtherBatches, ChoiceSource::kHeuristic, ChoiceSource::kFrozen,
        ChoiceSource::kOverride}) {
    EXPECT_EQ(parse_choice_source(to_string(source)), source);
    const ChoiceKind kind = kind_of(source);
    EXPECT_EQ(is_guess(source), kind == ChoiceKind::kBorrowed || kind == ChoiceKind::kEstimated);
  }
  EXPECT_FALSE(parse_choice_source("guess").has_value());
}

TEST_F(ChoiceTest, ADamagedOrForeignFileIsRefused) {
  const std::string text = *format_choice(choice(64));
  EXPECT_EQ(parse_choice(text, choice_digest(sample_tuning_key(), "g2")).status().message(),
            "it belongs to another key");
  std::string changed = text;
  changed.replace(changed.find("64"), 2, "32");
  EXPECT_THAT(parse_choice(changed, digest()).status().message(), HasSubstr("checksum"));
  EXPECT_FALSE(parse_choice(text.substr(0, text.size() / 2), digest()).ok());
  EXPECT_FALSE(parse_choice("", digest()).ok());
  ChoiceRecord no_config = choice(64);
  no_config.config = "[]";
  EXPECT_EQ(format_choice(no_config).status().code(), Code::kInvalidArgument);

  note("user", choice(64));
  ASSERT_TRUE(write_file_atomically(choice_file(path("user"), digest()), changed).ok());
  EXPECT_FALSE(TuningDatabase(user_only(), log()).noted_choice(sample_tuning_key(), kGenerator).has_value());
  EXPECT_EQ(events("bad_choice"), 1);
  const auto verified = DirectoryLayer(path("user"), true, Trust::kOwn, Log()).verify();
  ASSERT_EQ(verified.size(), 1u);
  EXPECT_THAT(verified[0].problem, HasSubstr("checksum"));
}

TEST_F(ChoiceTest, AFieldOfAnotherTypeMakesADamagedFile) {
  Json json = Json::parse(*format_choice(choice(64)));
  json.erase("checksum");
  const Json passed = {{"config", {{"block_m", 192}}}, {"reason", 3}};
  for (const auto& [name, value, sentence] :
       {std::tuple("device", Json(3), "device is 3; it must be a string"),
        std::tuple("estimates", Json::array(), "estimates is []; it must be a string"),
        std::tuple("exported", Json("yes"), "exported is \"yes\"; it must be true or false"),
        std::tuple("passed_over", Json(true), "passed_over is true; it must be a list"),
        std::tuple("passed_over", Json::array({passed}), "passed_over: reason is 3; it must be a string")}) {
    Json changed = json;
    changed[name] = value;
    EXPECT_EQ(parse_choice(*format_checked_json(changed, kMaxChoiceBytes), digest()).status().message(), sentence);
  }
}

TEST_F(ChoiceTest, WhatIsNotedIsFoundByTheNextProcessAndDecidesNothing) {
  note("user", choice(64));
  TuningDatabase next(user_only(), log());
  EXPECT_EQ(next.noted_choice(sample_tuning_key(), kGenerator), choice(64));
  EXPECT_FALSE(next.noted_choice(sample_tuning_key(), "g2").has_value()) << "another generator makes other kernels";
  EXPECT_EQ(decision(user_only()), "");
  next.drop_choice(sample_tuning_key(), kGenerator);
  EXPECT_FALSE(next.noted_choice(sample_tuning_key(), kGenerator).has_value());
  EXPECT_FALSE(stored("user").ok());
}

TEST_F(ChoiceTest, WithoutADirectoryItIsKnownInTheProcess) {
  TuningDatabase database(CacheDirectories{}, log());
  database.note_choice(choice(64));
  EXPECT_EQ(database.noted_choice(sample_tuning_key(), kGenerator), choice(64));
}

TEST_F(ChoiceTest, AnExportedOneDecidesInItsLayer) {
  note("origin", choice(64));
  const std::string file = bundle(at("origin"));
  CacheDirectories both = {.user = path("user"), .read_only = {file}};
  EXPECT_EQ(decision(both), "choice " + sample_config(64));
  add("later", record(128));
  both.read_only.push_back(path("later"));
  EXPECT_EQ(decision(both), "choice " + sample_config(64)) << "a later layer's record comes after it";
  add("user", record(32));
  EXPECT_EQ(decision(both), "record " + sample_config(32)) << "what this machine has timed comes first";
}

TEST_F(ChoiceTest, InOneLayerARecordIsBetterThanAGuessAndAFrozenChoiceThanARecord) {
  add("user", record(32));
  TuningDatabase(user_only(), log()).keep_choice(choice(64, ChoiceSource::kHeuristic, true));
  EXPECT_EQ(decision(user_only()), "record " + sample_config(32));
  TuningDatabase(user_only(), log()).keep_choice(choice(64, ChoiceSource::kFrozen, true));
  EXPECT_EQ(decision(user_only()), "choice " + sample_config(64));
}

TEST_F(ChoiceTest, WhatARecordHasOvertakenIsNotExported) {
  note("origin", choice(64));
  add("shipped", record(128));
  CacheDirectories served = {.user = path("user"), .read_only = {bundle(at("origin"), path("shipped"))}};
  EXPECT_EQ(decision(served), "") << "the origin would not choose it today";
  note("origin", choice(128, ChoiceSource::kTuning));
  served.read_only = {bundle(at("origin"), path("shipped"))};
  EXPECT_EQ(decision(served), "choice " + sample_config(128));
  note("origin", choice(64, ChoiceSource::kFrozen));
  served.read_only = {bundle(at("origin"), path("shipped"))};
  EXPECT_EQ(decision(served), "choice " + sample_config(64)) << "frozen over records";
}

// A kernel that was forced once for debugging became that of whoever read the bundle.
TEST_F(ChoiceTest, WhatAVariableForcedIsNeitherExportedNorImported) {
  note("origin", choice(64, ChoiceSource::kOverride));
  const CacheLayers layers = open_layers(at("origin"), log());
  EXPECT_EQ(export_bundle(layers, {}, layers)->choices, 0);

  const auto packed = pack_bundle(
      {{choice_file("", digest()).native(), *format_choice(choice(64, ChoiceSource::kOverride, /*exported=*/true))}});
  ASSERT_TRUE(packed.ok());
  ASSERT_TRUE(write_file_atomically(path("bundle"), packed->bytes).ok());
  const auto imported = import_into("user", path("bundle"));
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->choices, 0);
  EXPECT_FALSE(stored("user").ok());
}

TEST_F(ChoiceTest, AnImportTakesThemAndLeavesTheDirectorysOwnWinner) {
  note("origin", choice(64));
  const std::string file = bundle(at("origin"));
  const auto first = import_into("user", file);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->choices, 1);
  EXPECT_EQ(first->new_choices, 1);
  EXPECT_EQ(decision(user_only()), "choice " + sample_config(64));
  EXPECT_EQ(import_into("user", file)->new_choices, 0);
  note("user", choice(32));
  EXPECT_EQ(decision(user_only()), "choice " + sample_config(64)) << "a note does not replace what was imported";

  add("tuned", record(32));
  const auto second = import_into("tuned", file);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->new_choices, 0);
  EXPECT_EQ(decision(at("tuned")), "record " + sample_config(32));
}

TEST_F(ChoiceTest, ABundleWithADamagedOneIsRefused) {
  std::string text = *format_choice(choice(64, ChoiceSource::kHeuristic, true));
  text.replace(text.find("64"), 2, "32");
  const auto packed = pack_bundle({{choice_file("", digest()).native(), text}});
  ASSERT_TRUE(packed.ok());
  ASSERT_TRUE(write_file_atomically(path("bundle"), packed->bytes).ok());
  EXPECT_THAT(import_into("user", path("bundle")).status().message(), HasSubstr("nothing is imported"));
  EXPECT_EQ(decision({.user = path("user"), .read_only = {path("bundle")}}), "");
}

}  // namespace
}  // namespace hstujit
