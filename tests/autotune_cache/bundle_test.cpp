#include "autotune_cache/bundle/bundle.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "autotune_cache/bundle/tar.h"
#include "autotune_cache/files/checked_json.h"
#include "autotune_cache/store/bundle_transfer.h"
#include "cache_fixture.h"
#include "compiler/support/hash.h"
#include "compiler/support/read_limits.h"
#include "tests/autotune_cache/zstd_frames.h"
#include "tests/support/sanitized.h"

namespace hstujit {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TuningRecord record_of(const std::string& op, double median) {
  return sample_record({{sample_config(64), kWorkload, "s", median, 1}}, sample_tuning_key(op));
}

class BundleTest : public CacheTest {
 protected:
  void SetUp() override {
    CacheTest::SetUp();
    ArtifactStore store(at("origin"), log());
    for (const char* config : {R"({"block_m":64})", R"({"block_m":128})"})
      ASSERT_TRUE(store.put(sample_key(config), cubin_of(config), sample_info()));
    TuningDatabase database(at("origin"), log());
    ASSERT_TRUE(database.add(record_of("hstu_attention", 10)).ok());
    ASSERT_TRUE(database.add(record_of("layer_norm", 20)).ok());
  }

  CacheDirectories at(const std::string& name) const { return {.user = path(name), .read_only = {}}; }
  ExportedBundle exported(const std::string& directory, const std::vector<std::string>& ops = {}) {
    const CacheLayers layers = open_layers(at(directory), log());
    auto bundle = export_bundle(layers, ops, layers);
    EXPECT_TRUE(bundle.ok()) << bundle.status().message();
    return std::move(bundle).value();
  }
  std::string write(const std::string& bytes) {
    EXPECT_TRUE(write_file_atomically(path("bundle"), bytes).ok());
    return path("bundle");
  }
  Result<ImportReport> import_into(const std::string& directory, const std::string& file) {
    ArtifactStore store(at(directory), log());
    TuningDatabase database(at(directory), log());
    return import_bundle(BundleLayer(file, Trust::kOwn, linked_decoder, log()), store, database);
  }
};

TEST_F(BundleTest, WhatIsExportedIsImportedOnce) {
  const ExportedBundle bundle = exported("origin");
  EXPECT_EQ(bundle.kernels, 2);
  EXPECT_EQ(bundle.records, 2);
  const std::string file = write(compressed(bundle.packed.bytes));
  const auto first = import_into("user", file);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->kernels, 2);
  EXPECT_EQ(first->new_kernels, 2);
  EXPECT_EQ(first->records, 2);
  EXPECT_EQ(first->new_records, 2);
  EXPECT_EQ(ArtifactStore(at("user"), log()).find(sample_key())->cubin, cubin_of(sample_key().config));
  EXPECT_EQ(ArtifactStore(at("user"), log()).find(sample_key())->info, sample_info());
  EXPECT_EQ(TuningDatabase(at("user"), log()).list().size(), 2u);
  for (const VerifiedFile& entry : ArtifactStore(at("user"), log()).verify()) EXPECT_EQ(entry.problem, "");

  const auto second = import_into("user", file);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->kernels, 2);
  EXPECT_EQ(second->new_kernels + second->new_records + second->changed_records, 0);
}

TEST_F(BundleTest, TheSameEntriesGiveTheSameBytes) {
  const ExportedBundle bundle = exported("origin");
  ASSERT_TRUE(import_into("user", write(bundle.packed.bytes)).ok());
  EXPECT_EQ(exported("user").packed.bytes, bundle.packed.bytes) << "whichever directory they come from, and when";
  EXPECT_EQ(exported("user").packed.sha256, bundle.packed.sha256);
}

TEST_F(BundleTest, OneOperatorCanBeExported) {
  EXPECT_EQ(exported("origin", {"hstu_attention"}).kernels, 2);
  EXPECT_EQ(exported("origin", {"hstu_attention"}).records, 1);
  EXPECT_EQ(exported("origin", {"layer_norm"}).kernels, 0);
  EXPECT_EQ(exported("origin", {"layer_norm"}).records, 1);
  EXPECT_EQ(exported("origin", {"silu", "hstu_attention", "layer_norm"}).records, 2);
}

TEST_F(BundleTest, WhatIsRefusedIsNamed) {
  EXPECT_TRUE(exported("origin").refused.empty());
  const std::string digest = *artifact_digest(sample_key(R"({"block_m":64})"));
  const ArtifactFiles files(path("origin"), sample_key().arch, digest);
  ASSERT_TRUE(write_file_atomically(files.cubin, "x").ok());
  const ExportedBundle bundle = exported("origin");
  EXPECT_EQ(bundle.kernels, 1);
  ASSERT_EQ(bundle.refused.size(), 1u);
  EXPECT_EQ(bundle.refused[0].path, files.metadata.native());
  EXPECT_THAT(bundle.refused[0].problem, ::testing::HasSubstr("the cubin has 1 byte"));

  // Nothing is missing where another layer has it.
  ArtifactStore whole(at("whole"), log());
  ASSERT_TRUE(whole.put(sample_key(R"({"block_m":64})"), cubin_of("x"), sample_info()));
  const CacheLayers layers = open_layers({.user = path("origin"), .read_only = {path("whole")}}, log());
  const auto both = export_bundle(layers, {}, layers);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->kernels, 2);
  EXPECT_TRUE(both->refused.empty());
}

TEST_F(BundleTest, ImportedTimingsJoinThoseThatAreThere) {
  TuningRecord mine = record_of("hstu_attention", 5);
  mine.timed[0].config = R"({"block_m":128})";
  ASSERT_TRUE(TuningDatabase(at("user"), log()).add(mine).ok());
  const auto report = import_into("user", write(exported("origin").packed.bytes));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->new_records, 1);
  EXPECT_EQ(report->changed_records, 1);
  const auto merged = TuningDatabase(at("user"), log()).find(mine.key);
  EXPECT_EQ(merged->timed.size(), 2u);
  EXPECT_EQ(merged->winner.text(), R"({"block_m":128})");
}

TEST_F(BundleTest, ABundleIsALayer) {
  const std::string file = write(compressed(exported("origin").packed.bytes));
  const CacheDirectories directories = {.user = path("user"), .read_only = {file}, .decode = linked_decoder};
  ArtifactStore store(directories, log());
  const auto found = store.find(sample_key());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->cubin, cubin_of(sample_key().config));
  EXPECT_EQ(found->directory, file);
  EXPECT_FALSE(store.find(sample_key(R"({"block_m":1})")).has_value());
  EXPECT_EQ(store.list().size(), 2u);
  EXPECT_EQ(store.verify().size(), 4u);
  EXPECT_TRUE(TuningDatabase(directories, log()).find(sample_tuning_key("layer_norm")).has_value());
  EXPECT_FALSE(std::filesystem::exists(path("user")));
}

// A few bytes on the disk may unpack to any size: what a look-up in a directory refuses, it refuses here, too.
TEST_F(BundleTest, EntriesAsLargeAsNoLookUpTakesAreRefused) {
  if (kThreadSanitized) GTEST_SKIP() << "one thread";
  const ArtifactFiles names(kNoRoot, sample_key().arch, *artifact_digest(sample_key()));
  const std::string digest = tuning_digest(sample_tuning_key("layer_norm"));
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path("origin"))) {
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(path("origin")).native()] = *read_file(entry.path(), kMaxRecordBytes);
  }
  const auto padded = [&](const std::string& name, size_t bytes) {
    auto larger = files;
    larger.at(name).resize(bytes, ' ');
    return write(compressed(pack_bundle(larger)->bytes));
  };
  const std::string record = record_file(kNoRoot, digest).native(), metadata = names.metadata.native();
  for (const auto& [name, max] : {std::pair(metadata, kMaxMetadataBytes), {record, kMaxRecordBytes}}) {
    // At the limit it is read, and the reader of JSON has limits of its own.
    EXPECT_THAT(import_into("taken", padded(name, max)).status().message(), Not(HasSubstr("the most for a file")));
    const std::string file = padded(name, max + 1);
    const Status status = import_into("user", file).status();
    EXPECT_EQ(status.code(), Code::kIo) << name;
    EXPECT_THAT(status.message(),
                HasSubstr(fmt::format("has {} bytes; the most for a file of its kind is {}", max + 1, max)));
    const CacheDirectories layer = {.user = path("user"), .read_only = {file}, .decode = linked_decoder};
    ArtifactStore store(layer, log());
    TuningDatabase database(layer, log());
    EXPECT_EQ(store.find(sample_key()).has_value(), name != metadata) << "as a layer it has no such entry";
    EXPECT_EQ(store.list().size(), name == metadata ? 1u : 2u);
    EXPECT_EQ(database.find(sample_tuning_key("layer_norm")).has_value(), name != record);
    EXPECT_EQ(database.list().size(), name == record ? 1u : 2u);
  }
  EXPECT_FALSE(std::filesystem::exists(path("user"))) << "nothing of such a bundle is imported";
}

TEST_F(BundleTest, WantOfOpenFilesIsNoExportOfTheRest) {
  const bool fails = without_open_files([&] {
    const CacheLayers layers = open_layers(at("origin"), Log());
    return is_system_failure(export_bundle(layers, {}, layers).status());
  });
  EXPECT_TRUE(fails);
}

// Somebody expects something in it: a bundle without that would look whole.
TEST_F(BundleTest, ADirectoryThatIsOnlyReadAndIsNotThereIsNamed) {
  const CacheLayers layers = open_layers({.user = path("origin"), .read_only = {path("gone")}}, Log());
  for (const auto list : {&folders_passed_over, &verify_layer}) {
    std::vector<VerifiedFile> named = gather(layers, list);
    std::erase_if(named, [](const VerifiedFile& file) { return file.problem.empty(); });
    ASSERT_EQ(named.size(), 1u);
    EXPECT_EQ(named[0].path, path("gone"));
    EXPECT_THAT(named[0].problem, HasSubstr("it does not exist; HSTUJIT_CACHE_PATH names what is only read"));
  }
  const Status status = export_bundle(layers, {}, layers).status();
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr("gone\" is not read: it does not exist"));
  EXPECT_TRUE(gather(open_layers(at("gone"), Log()), &folders_passed_over).empty()) << "nothing was written yet";
}

TEST_F(BundleTest, ABadBundleIsOneWarningAndNoLayer) {
  const CacheDirectories directories = {.user = path("origin"), .read_only = {write("no bundle")}};
  ArtifactStore store(directories, log());
  EXPECT_FALSE(store.find(sample_key(R"({"block_m":1})")).has_value());
  EXPECT_FALSE(store.find(sample_key(R"({"block_m":2})")).has_value());
  EXPECT_TRUE(store.find(sample_key()).has_value());
  EXPECT_EQ(events("bad_bundle"), 1);
  EXPECT_EQ(events("bad_entry"), 0);
}

// Every damage is refused with a sentence, and the directory stays as it was.
TEST_F(BundleTest, NoDamagedBundleIsImported) {
  const auto [tar, sha256] = exported("origin").packed;
  const std::string frame = compressed(tar);
  const auto flipped = [](std::string bytes, size_t at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    return bytes;
  };
  const std::pair<std::string, std::string> cases[] = {
      {"", "it is empty"},
      {"a text of some length", "ends within a header"},
      {std::string(1000, 'x'), "no ustar header"},
      {tar.substr(0, 700), "ends within"},
      {tar.substr(0, tar.size() - 512), "its contents have"},
      {tar + std::string(512, '\0'), "its contents have"},
      {flipped(tar, tar.size() - 1), "belong to no file"},
      {flipped(tar, tar.rfind("block_m")), "SHA-256"},
      {flipped(tar, tar.find("sha256") + 12), "hstujit-bundle.json"},
      {flipped(tar, 3), "no ustar header"},
      {flipped(tar, 1020), "bytes that belong to no file follow \"hstujit-bundle.json\""},
      {tar.substr(1024), "first file is not"},
      {frame.substr(0, frame.size() / 2), "ends early"},
      {frame + "x", "its zstd frame"},
      {compressed("some other file, compressed"), "its tar archive"},
      {compressed(std::string(size_t{100} << 20, '\0')), "unpacks to more than"},
  };
  for (const auto& [bytes, sentence] : cases) {
    const auto report = import_into("user", write(bytes));
    ASSERT_FALSE(report.ok()) << sentence;
    EXPECT_EQ(report.status().code(), Code::kIo);
    EXPECT_THAT(report.status().message(), HasSubstr(sentence));
    EXPECT_THAT(report.status().message(), HasSubstr(path("bundle")));
  }
  // A few bits of a frame change nothing that comes out of it.
  for (size_t i = 0; i < frame.size(); i += 7) {
    const auto bundle = Bundle::unpack(flipped(frame, i), linked_decoder);
    EXPECT_TRUE(!bundle.ok() || (*bundle)->sha256() == sha256) << i;
  }
  for (size_t i = 1024; i < tar.size(); i += 101) EXPECT_FALSE(import_into("user", write(flipped(tar, i))).ok()) << i;
  EXPECT_FALSE(import_into("user", path("absent")).ok());
  EXPECT_FALSE(std::filesystem::exists(path("user")));
}

// Whole by its digest, and yet no archive of the files that its manifest counts.
TEST_F(BundleTest, AnArchiveThatSaysTwoThingsIsRefused) {
  const auto bundle_of = [](const std::vector<std::string>& names, size_t count, const std::string& rest) {
    std::string contents;
    for (const std::string& name : names) EXPECT_TRUE(append_to_tar(contents, name, "bytes of " + name).ok());
    finish_tar(contents);
    contents += rest;
    std::string tar;
    const std::string manifest = *format_checked_json({{"format", "hstujit-bundle-1"},
                                                       {"files", count},
                                                       {"bytes", contents.size()},
                                                       {"sha256", sha256_hex(contents)}},
                                                      kMaxMetadataBytes);
    EXPECT_TRUE(append_to_tar(tar, "hstujit-bundle.json", manifest).ok());
    return Bundle::unpack(tar + contents, linked_decoder).status().message();
  };
  EXPECT_EQ(bundle_of({"a", "b"}, 2, ""), "");
  EXPECT_EQ(bundle_of({"a", "b"}, 2, std::string(512, '\0')), "") << "padding";
  EXPECT_EQ(bundle_of({"a", "b", "a"}, 3, ""), "its tar archive has \"a\" twice");
  EXPECT_EQ(bundle_of({"a", "b"}, 3, ""), "its tar archive has 2 files after hstujit-bundle.json, which says 3");
  EXPECT_THAT(bundle_of({"a"}, 1, "more"), HasSubstr("bytes that belong to no file follow the end of its tar archive"));
}

// Its end is not the archive's, of which the beginning alone is read at first.
TEST_F(BundleTest, AManifestThatIsLargerThanWhatIsReadOfItIsNamedSo) {
  std::string tar;
  ASSERT_TRUE(append_to_tar(tar, "hstujit-bundle.json", std::string(18'001, ' ')).ok());
  finish_tar(tar);
  const auto sentence = [this](const std::string& bytes) {
    return import_into("user", write(bytes)).status().message();
  };
  EXPECT_THAT(sentence(tar),
              HasSubstr("\"hstujit-bundle.json\" in its tar archive has 18001 bytes, and at most 3584 of "
                        "it are read"));
  EXPECT_THAT(sentence(tar.substr(0, 18'000)), HasSubstr("its tar archive ends within \"hstujit-bundle.json\""));
}

// Texts of bundles go to terminals and into errors of the C API.
TEST_F(BundleTest, OnlyADigestIsShownAsWhatABundleSays) {
  const auto problem_of = [](const std::string& sha256) {
    std::string contents;
    finish_tar(contents);
    std::string tar;
    const std::string manifest = *format_checked_json(
        {{"format", "hstujit-bundle-1"}, {"files", 0}, {"bytes", contents.size()}, {"sha256", sha256}},
        kMaxMetadataBytes);
    EXPECT_TRUE(append_to_tar(tar, "hstujit-bundle.json", manifest).ok());
    return Bundle::unpack(tar + contents, linked_decoder).status().message();
  };
  const std::string other = sha256_hex("other");
  EXPECT_THAT(problem_of(other), EndsWith("and hstujit-bundle.json says " + other));
  EXPECT_THAT(problem_of("\x1b[31m\nhstujit: all is well"), EndsWith("and hstujit-bundle.json says none"));
  EXPECT_THAT(problem_of(std::string(900'000, 'a')), EndsWith("and hstujit-bundle.json says none"));
}

// Whole by its digest, and yet with an entry that no look-up would take.
TEST_F(BundleTest, ABundleWithOneBadEntryIsRefusedWhole) {
  const ArtifactFiles names("", "sm_90a", *artifact_digest(sample_key()));
  const ArtifactMetadata metadata = {sample_key(), sample_info(), 3, "digest"};
  const std::map<std::string, std::string> cases[] = {
      {{names.metadata.native(), *format_metadata(metadata)}, {names.cubin.native(), "abc"}},
      {{names.metadata.native(), *format_metadata(metadata)}},
      {{names.cubin.native(), cubin_of("abc")}},
      {{"v1/../../etc/passwd", "text"}},
      {{record_file("", tuning_digest(sample_tuning_key("a"))).native(), *format_record(record_of("b", 1))}}};
  for (const auto& files : cases) {
    const auto packed = pack_bundle(files);
    ASSERT_TRUE(packed.ok());
    const auto report = import_into("user", write(packed->bytes));
    ASSERT_FALSE(report.ok());
    EXPECT_THAT(report.status().message(), HasSubstr("nothing is imported"));
  }
  EXPECT_FALSE(std::filesystem::exists(path("user")));
}

// Also where it has a good record already.
TEST_F(BundleTest, ARecordThatCannotBeMergedIsSaid) {
  const std::string file = write(exported("origin", {"layer_norm"}).packed.bytes);
  TuningRecord own = record_of("layer_norm", 5);
  own.timed[0].config = sample_config(128);
  ASSERT_TRUE(TuningDatabase(at("user"), log()).add(own).ok());
  const pid_t child = fork_or_throw();
  if (child == 0) {
    const rlimit nothing = {0, 0};
    if (::setrlimit(RLIMIT_FSIZE, &nothing) != 0) ::_exit(2);
    // The first entry of a cache that has none of them is a kernel.
    for (const char* cache : {"user", "new"}) {
      const Status status = import_into(cache, file).status();
      const auto says = [&](const char* part) { return status.message().find(part) != std::string::npos; };
      if (status.code() != Code::kIo || !says("cannot be kept in the cache") || !says("File too large")) ::_exit(1);
    }
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(TuningDatabase(at("user"), log()).find(own.key)->timed.size(), 1u);
}

TEST_F(BundleTest, WhatAFullRecordHasNoRoomForIsCounted) {
  if (kSanitized) GTEST_SKIP() << "records as large as any reader takes take minutes then";
  TuningRecord own = record_of("layer_norm", 5), others = record_of("layer_norm", 5);
  own.timed.clear();
  others.timed.clear();
  for (size_t i = 0; i < 40'000; ++i) {
    own.timed.push_back({fmt::format(R"({{"a":{}}})", i), kWorkload, "s", 5.0 + static_cast<double>(i), 1});
    others.rejected.push_back({fmt::format(R"({{"b":{}}})", i), "s", "crashed", ""});
  }
  ASSERT_TRUE(TuningDatabase(at("user"), log()).add(own).ok());
  const std::string name = record_file(kNoRoot, tuning_digest(own.key)).native();
  const std::string file = write(pack_bundle({{name, *format_record(others)}})->bytes);
  const auto report = import_into("user", file);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->left_out, 80'000 - static_cast<int64_t>(kMaxRecordFindings));
  EXPECT_EQ(report->changed_records, 1);
  const auto merged = TuningDatabase(at("user"), log()).find(own.key);
  ASSERT_TRUE(merged);
  EXPECT_TRUE(merged->timed == own.timed);
  EXPECT_EQ(merged->timed.size() + merged->rejected.size(), kMaxRecordFindings);
  EXPECT_EQ(events("record_full"), 0) << "the report says it";

  EXPECT_EQ(import_into("user", file)->changed_records, 0);
  // Each of two caches that take turns has its own.
  ASSERT_TRUE(TuningDatabase(at("user"), log()).add(others).ok());
  EXPECT_EQ(events("record_full"), 1);
  EXPECT_EQ(TuningDatabase(at("user"), log()).find(own.key)->rejected.size(), 40'000u);
}

TEST_F(BundleTest, ADirectoryThatKeepsNothingIsSaid) {
  const std::string file = write(exported("origin").packed.bytes);
  ASSERT_TRUE(write_file_atomically(path("taken"), "a file").ok());
  const auto report = import_into("taken", file);
  EXPECT_EQ(report.status().code(), Code::kIo);
  EXPECT_THAT(report.status().message(), HasSubstr(path("taken")));
  ArtifactStore memory(CacheDirectories{}, log());
  TuningDatabase database(CacheDirectories{}, log());
  EXPECT_EQ(import_bundle(BundleLayer(file, Trust::kOwn, linked_decoder, log()), memory, database).status().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace hstujit
