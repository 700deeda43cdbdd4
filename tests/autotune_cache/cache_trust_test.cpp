// ls, verify, prune and export see what a look-up accepts in a cache directory, and nothing else: links, what belongs
// to others, what anybody may write, and what is no file of its place.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <map>

#include "autotune_cache/files/artifact_metadata.h"
#include "autotune_cache/store/bundle_transfer.h"
#include "cache_fixture.h"
#include "compiler/support/hash.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr unsigned kNobody = 65534;
const std::string kTrustedCubin = cubin_of("the bytes of a cubin");

// Bytes that pass for a cubin of one architecture, as NVRTC 13 writes its header.
std::string cubin_for(unsigned char arch) {
  std::string bytes = kTrustedCubin;
  bytes[4] = 2;  // 64 bits,
  bytes[5] = 1;  // little-endian,
  bytes[6] = 1;  // of version 1
  bytes[8] = 8;
  bytes[18] = static_cast<char>(190);
  bytes[49] = static_cast<char>(arch);
  return bytes;
}

class CacheTrustTest : public CacheTest {
 protected:
  void SetUp() override {
    CacheTest::SetUp();
    for (const char* directory : {"user", "elsewhere"}) fill(directory);
  }
  // One kernel and one record.
  void fill(const std::string& directory) {
    const CacheDirectories directories = {.user = path(directory), .read_only = {}};
    ASSERT_TRUE(ArtifactStore(directories, Log()).put(sample_key(), kTrustedCubin, sample_info()));
    ASSERT_TRUE(TuningDatabase(directories, Log()).add(sample()).ok());
  }
  static TuningRecord sample() { return sample_record({{sample_config(1), kWorkload, "s", 10, 1}}); }
  fs::path record_of(const std::string& directory) const {
    return record_file(path(directory), tuning_digest(sample_tuning_key()));
  }
  std::vector<std::string> passed_over(const CacheDirectories& directories) const {
    std::vector<std::string> paths;
    for (const VerifiedFile& folder : gather(open_layers(directories, Log()), &folders_passed_over))
      paths.push_back(folder.path);
    return paths;
  }
  // Every path below a folder with the bytes of its file, to see that nothing was changed there.
  std::map<std::string, std::string> contents(const std::string& directory) const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(path(directory)))
      all[entry.path()] = entry.is_regular_file() ? *whole_file(entry.path()) : "";
    return all;
  }
  std::vector<std::string> bad_files(const CacheDirectories& directories) {
    std::vector<std::string> bad;
    for (const VerifiedFile& file : ArtifactStore(directories, log()).verify()) {
      if (!file.problem.empty()) bad.push_back(file.path);
    }
    return bad;
  }
  // Nothing of the directory is used, in any way.
  void expect_nothing_used(const CacheDirectories& directories) {
    ArtifactStore store(directories, log());
    EXPECT_FALSE(store.find(sample_key()).has_value());
    EXPECT_THAT(store.list(), IsEmpty());
    const auto exported = export_bundle(store.layers(), {}, store.layers());
    EXPECT_THAT(exported.status().message(), HasSubstr("a bundle would lack what it holds"));
    EXPECT_THAT(exported.status().message(), testing::Not(HasSubstr("read nor written")))
        << "that it is not read is said once";
    EXPECT_FALSE(TuningDatabase(store.layers(), log()).find(sample_tuning_key()).has_value());
    EXPECT_THAT(TuningDatabase(store.layers(), log()).list(), IsEmpty());
    const PruneReport report = store.prune({.max_bytes = 0, .nvrtc = "13.0"});
    EXPECT_EQ(report.removed + report.kept + report.leftovers, 0);
    EXPECT_FALSE(store.put(sample_key(), kTrustedCubin, sample_info()));
    EXPECT_FALSE(store.put(sample_key("{}"), kTrustedCubin, sample_info()));
    EXPECT_TRUE(TuningDatabase(store.layers(), log()).add(sample()).ok()) << "merged, kept nowhere";
    EXPECT_EQ(events("directory_not_used"), 1) << "one warning for all of that";
    EXPECT_EQ(events("directory_not_writable") + events("bad_entry") + events("bad_record"), 0);
  }
};

struct Kind {
  const char* name;
  // Puts it in the place of a good file.
  std::function<void(const fs::path& file, const fs::path& elsewhere)> put;
  bool needs_root = false;
};

const Kind kKinds[] = {
    {"LinkToAGoodFile",
     [](const fs::path& file, const fs::path& elsewhere) {
       fs::remove(file);
       fs::create_symlink(elsewhere, file);
     }},
    {"LinkToAFolder",
     [](const fs::path& file, const fs::path& elsewhere) {
       fs::remove(file);
       fs::create_symlink(elsewhere.parent_path(), file);
     }},
    {"LinkToNothing",
     [](const fs::path& file, const fs::path&) {
       fs::remove(file);
       fs::create_symlink("nowhere", file);
     }},
    {"Folder",
     [](const fs::path& file, const fs::path& elsewhere) {
       fs::remove(file);
       fs::create_directories(file / "inside");
       fs::create_symlink(elsewhere.parent_path(), file / "inside" / "link");
     }},
    {"Pipe",
     [](const fs::path& file, const fs::path&) {
       fs::remove(file);
       ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
     }},
    {"WritableByAnybody", [](const fs::path& file, const fs::path&) { fs::permissions(file, fs::perms(0646)); }},
    {"OfAnotherUser",
     [](const fs::path& file, const fs::path&) { ASSERT_EQ(::chown(file.c_str(), kNobody, kNobody), 0); }, true},
    {"Huge", [](const fs::path& file, const fs::path&) { fs::resize_file(file, uintmax_t{1} << 40); }},
};

class BadItemTest : public CacheTrustTest, public ::testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override {
    if (GetParam().needs_root && ::geteuid() != 0) GTEST_SKIP() << "only a superuser can give files away";
    CacheTrustTest::SetUp();
  }
};

TEST_P(BadItemTest, InThePlaceOfAnEntryIsSeenByNobodyAndReplaced) {
  ::alarm(60);  // whoever waits for a pipe's writer waits for ever
  const ArtifactFiles files = files_of(sample_key());
  const ArtifactFiles elsewhere = files_of(sample_key(), "elsewhere");
  const auto before = contents("elsewhere");
  for (const auto& [file, good] :
       {std::pair(files.cubin, elsewhere.cubin), std::pair(files.metadata, elsewhere.metadata)}) {
    SCOPED_TRACE(file.extension());
    GetParam().put(file, good);
    lines_.clear();
    ArtifactStore store(user_only(), log());
    EXPECT_FALSE(store.find(sample_key()).has_value());
    EXPECT_FALSE(store.find(sample_key()).has_value());
    EXPECT_EQ(events("bad_entry"), 1) << "one warning, not one per look";
    EXPECT_THAT(store.list(), IsEmpty());
    EXPECT_EQ(export_bundle(store.layers(), {}, store.layers())->kernels, 0);
    const std::vector<std::string> bad = bad_files(user_only());
    EXPECT_THAT(
        bad, ::testing::Contains(file == files.cubin && std::string(GetParam().name) == "Huge" ? files.metadata.native()
                                                                                               : file.native()));
    const PruneReport report = store.prune({.max_bytes = uint64_t{1} << 39, .nvrtc = "13.0"});
    EXPECT_EQ(report.removed + report.leftovers, 0) << "what is no good entry is nobody's of a version, nor counted";
    EXPECT_LT(report.kept_bytes, uint64_t{1} << 20);
    EXPECT_TRUE(store.put(sample_key(), kTrustedCubin, sample_info()));
    const auto found = ArtifactStore(user_only(), log()).find(sample_key());
    ASSERT_TRUE(found.has_value()) << "repaired";
    EXPECT_EQ(found->cubin, kTrustedCubin);
    EXPECT_THAT(bad_files(user_only()), IsEmpty());
  }
  EXPECT_EQ(contents("elsewhere"), before);
  ::alarm(0);
}

TEST_P(BadItemTest, InThePlaceOfARecordIsSeenByNobody) {
  ::alarm(60);
  const auto before = contents("elsewhere");
  GetParam().put(record_of("user"), record_of("elsewhere"));
  TuningDatabase database(user_only(), log());
  EXPECT_FALSE(database.find(sample_tuning_key()).has_value());
  EXPECT_FALSE(database.find(sample_tuning_key()).has_value());
  EXPECT_EQ(events("bad_record"), 1);
  EXPECT_THAT(database.list(), IsEmpty());
  EXPECT_EQ(export_bundle(database.layers(), {}, database.layers())->records, 0);
  EXPECT_THAT(bad_files(user_only()), ElementsAre(record_of("user").native()));
  ArtifactStore(user_only(), log()).prune({.max_bytes = 0, .nvrtc = {}});
  EXPECT_TRUE(database.add(sample()).ok()) << "merged, kept or not";
  EXPECT_EQ(contents("elsewhere"), before);
  ::alarm(0);
}

INSTANTIATE_TEST_SUITE_P(All, BadItemTest, ::testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(CacheTrustTest, AnEntryInTheFolderOfAnotherArchitectureIsRefused) {
  const ArtifactFiles files = files_of(sample_key());
  const fs::path folder = path("user") + "/v1/sm_80/" + files.folder().filename().native();
  fs::create_directories(folder.parent_path());
  fs::rename(files.folder(), folder);
  ArtifactStore store(user_only(), log());
  EXPECT_FALSE(store.layers()[0]->find_artifact("sm_80", *artifact_digest(sample_key())).ok());
  EXPECT_THAT(store.list(), IsEmpty());
  EXPECT_EQ(export_bundle(store.layers(), {}, store.layers())->kernels, 0);
  std::vector<std::string> problems;
  for (const VerifiedFile& file : store.verify()) {
    if (!file.problem.empty()) problems.push_back(file.problem);
  }
  EXPECT_THAT(problems, ElementsAre("it is of sm_90a, and is in the folder of sm_80"));
}

// Whole by length and checksum, and yet no code for the key's GPU.
TEST_F(CacheTrustTest, ACubinOfAnotherArchitectureIsRefused) {
  const ArtifactFiles files = files_of(sample_key());
  const auto store_it = [&](const std::string& cubin) {
    ASSERT_TRUE(write_file_atomically(files.cubin, cubin).ok());
    ASSERT_TRUE(write_file_atomically(files.metadata,
                                      *format_metadata({sample_key(), sample_info(), cubin.size(), sha256_hex(cubin)}))
                    .ok());
  };
  std::string of_version_7 = cubin_for(0);
  of_version_7[8] = 7;
  of_version_7[48] = 80;
  std::string of_the_host = kTrustedCubin;
  of_the_host[18] = 62;
  std::string of_32_bits = cubin_for(90);
  of_32_bits[4] = 1;
  const std::string other_sm = "the cubin is for sm_80, and its key says \"sm_90a\"";
  for (const auto& [cubin, problem] :
       {std::pair(cubin_for(80), other_sm), std::pair(of_version_7, other_sm),
        std::pair(of_32_bits, std::string("the cubin is an ELF image, but no 64-bit little-endian one of version 1")),
        std::pair(of_the_host, std::string("the cubin is for the machine 62 of ELF, not for a GPU"))}) {
    store_it(cubin);
    lines_.clear();
    ArtifactStore store(user_only(), log());
    EXPECT_FALSE(store.find(sample_key()).has_value());
    EXPECT_EQ(events("bad_entry"), 1);
    EXPECT_THAT(store.list(), IsEmpty());
    EXPECT_EQ(store.verify()[0].problem, problem);
    EXPECT_FALSE(store.put(sample_key("{}"), cubin, sample_info())) << "nor is one kept";
    EXPECT_EQ(events("not_stored"), 1);
  }
  of_version_7[48] = 90;
  for (const std::string& cubin : {cubin_for(90), of_version_7}) {
    store_it(cubin);
    EXPECT_TRUE(ArtifactStore(user_only(), log()).find(sample_key()).has_value());
  }
}

// Each folder of the layout as a link to the same folder of another cache, whose entries are good.
TEST_F(CacheTrustTest, NoFolderBelowTheRootMayBeALink) {
  const auto before = contents("elsewhere");
  const fs::path kernel = files_of(sample_key()).folder().lexically_relative(path("user"));
  const fs::path record = record_of("user").parent_path().lexically_relative(path("user"));
  for (const fs::path& name : {kernel, kernel.parent_path(), record, record.parent_path()}) {
    SCOPED_TRACE(name);
    fs::remove_all(path("user"));
    fill("user");
    fs::remove_all(path("user") / name);
    fs::create_directory_symlink(path("elsewhere") / name, path("user") / name);
    lines_.clear();
    const bool of_kernels = *std::next(name.begin()) != "tuning";
    ArtifactStore store(user_only(), log());
    TuningDatabase database(store.layers(), log());
    EXPECT_EQ(store.find(sample_key()).has_value(), !of_kernels);
    EXPECT_EQ(store.list().size(), of_kernels ? 0u : 1u);
    EXPECT_EQ(database.find(sample_tuning_key()).has_value(), of_kernels);
    EXPECT_EQ(database.list().size(), of_kernels ? 1u : 0u);
    EXPECT_THAT(bad_files(user_only()), ElementsAre((path("user") / name).native()));
    EXPECT_THAT(passed_over(user_only()), ElementsAre((path("user") / name).native()));
    EXPECT_THAT(store.prune({.max_bytes = uint64_t{1} << 39, .nvrtc = {}}).unread.message(),
                HasSubstr((path("user") / name).native()));
    EXPECT_EQ(store.put(sample_key(), kTrustedCubin, sample_info()), !of_kernels);
    EXPECT_TRUE(database.add(sample()).ok());
    store.drop(sample_key(), kTrustedCubin);
    EXPECT_EQ(events("directory_not_used"), 1);
    EXPECT_TRUE(fs::is_symlink(path("user") / name));
    EXPECT_EQ(contents("elsewhere"), before);
  }
  fs::remove_all(path("user") + "/v1");
  fs::create_directory_symlink(path("elsewhere") + "/v1", path("user") + "/v1");
  lines_.clear();
  EXPECT_THAT(bad_files(user_only()), ElementsAre(path("user") + "/v1"));
  EXPECT_FALSE(ArtifactStore(user_only(), Log()).find(sample_key()).has_value());
  EXPECT_FALSE(ArtifactStore(user_only(), Log()).put(sample_key(), kTrustedCubin, sample_info()));
  EXPECT_THAT(passed_over(user_only()), ElementsAre(path("user") + "/v1"));
  EXPECT_FALSE(ArtifactStore(user_only(), Log()).prune({.max_bytes = 0, .nvrtc = {}}).unread.ok());
  EXPECT_EQ(contents("elsewhere"), before);
}

TEST_F(CacheTrustTest, WhatIsNotOfTheLayoutIsNamed) {
  const std::string version = path("user") + "/v1/";
  fs::create_directory(version + "junk");
  fs::create_directory(version + "sm_90b");
  std::ofstream(version + "stray") << "a";
  fs::create_directory_symlink("/", version + "zzz");
  EXPECT_THAT(bad_files(user_only()),
              ElementsAre(version + "junk", version + "sm_90b", version + "stray", version + "zzz"));
  EXPECT_THAT(passed_over(user_only()), IsEmpty()) << "no look-up would look there";
}

// A user who asks for the contents is told what could not be looked at.
TEST_F(CacheTrustTest, ExportAndPruneFailWhereAFolderIsPassedOver) {
  const fs::path version = path("user") + "/v1";
  for (const fs::path& folder : {files_of(sample_key()).folder().parent_path(), version, fs::path(path("user"))}) {
    SCOPED_TRACE(folder);
    fs::permissions(folder, fs::perms(0777));
    const CacheLayers layers = open_layers(user_only(), log());
    const Result<ExportedBundle> bundle = export_bundle(layers, {}, layers);
    EXPECT_THAT(bundle.status().message(), HasSubstr("a bundle would lack what it holds"));
    EXPECT_THAT(bundle.status().message(), HasSubstr(folder.native()));
    const PruneReport pruned = ArtifactStore(user_only(), log()).prune({.max_bytes = 0, .nvrtc = {}});
    EXPECT_THAT(pruned.unread.message(), HasSubstr(folder.native()));
    fs::permissions(folder, fs::perms(0700));
  }
  EXPECT_THAT(passed_over(user_only()), IsEmpty());
}

// A pipe or a file in the place of a folder hides nothing that was there: it is for verify to name.
TEST_F(CacheTrustTest, ExportAndPrunePassOverWhatIsNoFolder) {
  for (const char* place : {"/v1/choices", "/v1/tuning", "/v1/sm_90a"}) {
    const std::string folder = path("user") + place;
    fs::create_directories(folder);
    ASSERT_EQ(::mkfifo((folder + "/fifo").c_str(), 0600), 0);
    std::ofstream(folder + "/stray") << "a";
  }
  EXPECT_THAT(passed_over(user_only()), IsEmpty());
  EXPECT_EQ(bad_files(user_only()).size(), 6u);
  const CacheLayers layers = open_layers(user_only(), log());
  EXPECT_TRUE(export_bundle(layers, {}, layers).ok());
  EXPECT_TRUE(ArtifactStore(user_only(), log()).prune({.max_bytes = 0, .nvrtc = {}}).unread.ok());
}

TEST_F(CacheTrustTest, WhyMetadataIsPassedOverIsSaid) {
  const ArtifactFiles files = files_of(sample_key());
  fs::permissions(files.metadata, fs::perms(0666));
  std::map<std::string, std::string> problems;
  for (const CacheLayerPtr& layer : open_layers(user_only(), log()))
    for (const VerifiedFile& file : verify_layer(*layer)) problems[file.path] = file.problem;
  EXPECT_THAT(problems[files.cubin.native()], HasSubstr("its metadata is passed over: anybody may write it"));
  fs::remove(files.metadata);
  EXPECT_THAT(bad_files(user_only()), IsEmpty()) << "another process may be about to write it";
  fs::last_write_time(files.cubin, fs::file_time_type::clock::now() - std::chrono::hours(2));
  problems.clear();
  for (const CacheLayerPtr& layer : open_layers(user_only(), log()))
    for (const VerifiedFile& file : verify_layer(*layer)) problems[file.path] = file.problem;
  EXPECT_THAT(problems[files.cubin.native()], HasSubstr("it has no metadata"));
}

TEST_F(CacheTrustTest, ARootThatIsNoDirectoryIsPassedOver) {
  std::ofstream(path("file")) << "a";
  EXPECT_THAT(passed_over({.user = path("file"), .read_only = {}}), ElementsAre(path("file")));
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(passed_over({.user = path("fifo"), .read_only = {}}), ElementsAre(path("fifo")));
  EXPECT_THAT(passed_over({.user = path("none"), .read_only = {}}), IsEmpty()) << "nobody has made it yet";
}

TEST_F(CacheTrustTest, ALinkToTheWholeFileSystemIsOneBadFile) {
  fs::create_directory_symlink("/", path("user") + "/v1/sm_80");
  EXPECT_THAT(bad_files(user_only()), ElementsAre(path("user") + "/v1/sm_80"));
  ArtifactStore store(user_only(), log());
  EXPECT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.prune({}).kept, 1);
}

TEST_F(CacheTrustTest, PrunePassesOverWhatListPassesOver) {
  const ArtifactFiles files = files_of(sample_key());
  fs::rename(files.cubin, path("cubin"));
  fs::create_symlink(path("cubin"), files.cubin);
  ArtifactStore store(user_only(), log());
  EXPECT_THAT(store.list(), IsEmpty());
  const PruneReport report = store.prune({.max_bytes = 0, .nvrtc = {}});
  EXPECT_EQ(report.kept + report.removed + report.leftovers, 0);
  EXPECT_EQ(report.kept_bytes, 0u);
  EXPECT_TRUE(fs::exists(files.metadata));
}

TEST_F(CacheTrustTest, TheRootItselfMayBeALink) {
  fs::create_directory_symlink(path("elsewhere"), path("link"));
  const CacheDirectories directories = {.user = path("link"), .read_only = {}};
  ArtifactStore store(directories, log());
  EXPECT_TRUE(store.find(sample_key()).has_value());
  EXPECT_TRUE(store.put(sample_key("{}"), kTrustedCubin, sample_info()));
  EXPECT_EQ(store.list().size(), 2u);
  EXPECT_THAT(bad_files(directories), IsEmpty());
  EXPECT_EQ(events("directory_not_used"), 0);
}

TEST_F(CacheTrustTest, ARootThatAnybodyMayWriteIsLeftAloneUnlessItIsTrusted) {
  for (const mode_t mode : {0777, 01777, 0702}) {
    fs::permissions(path("user"), fs::perms(mode));
    const auto before = contents("user");
    lines_.clear();
    expect_nothing_used(user_only());
    EXPECT_THAT(lines_, ::testing::Contains(HasSubstr("anybody may write it")));
    EXPECT_THAT(lines_, ::testing::Contains(HasSubstr("HSTUJIT_TRUST_CACHE=1")));
    EXPECT_THAT(bad_files(user_only()), ElementsAre(path("user")));
    EXPECT_EQ(contents("user"), before);
    EXPECT_TRUE(ArtifactStore(shared(), log()).find(sample_key()).has_value());
    EXPECT_TRUE(TuningDatabase(shared(), log()).find(sample_tuning_key()).has_value());
    const CacheDirectories layer = {.user = "", .read_only = {path("user")}};
    EXPECT_FALSE(ArtifactStore(layer, Log()).find(sample_key()).has_value()) << "one that is only read, too";
  }
  fs::permissions(path("user"), fs::perms(0770));
  EXPECT_TRUE(ArtifactStore(user_only(), log()).find(sample_key()).has_value()) << "a group may write it";
}

TEST_F(CacheTrustTest, ARootInAFolderThatAnybodyMayWriteIsLeftAlone) {
  const fs::path open = path("open");
  fs::create_directory(open);
  fs::rename(path("user"), open / "cache");
  const CacheDirectories directories = {.user = open / "cache", .read_only = {}};
  fs::permissions(open, fs::perms(0777));
  expect_nothing_used(directories);
  fs::permissions(open, fs::perms(01777));
  EXPECT_TRUE(ArtifactStore(directories, log()).find(sample_key()).has_value()) << "the sticky bit, as in /tmp";
}

TEST_F(CacheTrustTest, ARootInAFolderThatAnybodyMayWriteIsNotMade) {
  const fs::path open = path("open");
  fs::create_directory(open);
  fs::permissions(open, fs::perms(0777));
  for (const char* name : {"cache", "new/cache", "new/../cache"}) {
    lines_.clear();
    expect_nothing_used({.user = open / name, .read_only = {}});
    EXPECT_TRUE(fs::is_empty(open)) << name;
    EXPECT_THAT(lines_, ::testing::Contains(HasSubstr("everybody may write the folder")));
  }
  const CacheDirectories trusted = {.user = open / "new" / "cache", .read_only = {}, .trust = Trust::kAll};
  EXPECT_TRUE(ArtifactStore(trusted, log()).put(sample_key(), kTrustedCubin, sample_info()));
}

TEST_F(CacheTrustTest, AFolderBelowTheRootThatAnybodyMayWriteIsNotUsed) {
  fs::permissions(files_of(sample_key()).folder(), fs::perms(0777));
  ArtifactStore store(user_only(), log());
  EXPECT_FALSE(store.find(sample_key()).has_value());
  EXPECT_FALSE(store.put(sample_key(), kTrustedCubin, sample_info()));
  EXPECT_THAT(store.list(), IsEmpty());
  EXPECT_EQ(events("directory_not_used"), 1);
  EXPECT_THAT(bad_files(user_only()), ElementsAre(files_of(sample_key()).folder().native()));
  EXPECT_TRUE(TuningDatabase(user_only(), log()).find(sample_tuning_key()).has_value());
}

TEST_F(CacheTrustTest, WhatIsMadeIsForItsOwnerAlone) {
  const mode_t old = ::umask(0);
  const CacheDirectories directories = {.user = path("a/b/new"), .read_only = {}};
  EXPECT_TRUE(ArtifactStore(directories, log()).put(sample_key(), kTrustedCubin, sample_info()));
  EXPECT_TRUE(TuningDatabase(directories, log()).add(sample()).ok());
  EXPECT_TRUE(ArtifactStore(directories, log()).find(sample_key()).has_value()) << "and is trusted";
  EXPECT_TRUE(TuningDatabase(directories, log()).find(sample_tuning_key()).has_value());
  int folders = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path("a"))) {
    if (!entry.is_directory()) continue;
    ++folders;
    EXPECT_EQ(entry.status().permissions(), fs::perms(0700)) << entry;
  }
  EXPECT_EQ(folders, 2 + 1 + 2 + 2);
  // One that was made for others to read stays so.
  ASSERT_TRUE(make_directories(path("system"), 0755).ok());
  EXPECT_TRUE(
      ArtifactStore({.user = path("system"), .read_only = {}}, log()).put(sample_key(), kTrustedCubin, sample_info()));
  ::umask(old);
  EXPECT_EQ(fs::status(files_of(sample_key(), "system").folder()).permissions(), fs::perms(0755));
}

TEST_F(CacheTrustTest, ABundleThatAnybodyMayWriteIsNoLayer) {
  const CacheLayers layers = open_layers(user_only(), log());
  const auto exported = export_bundle(layers, {}, layers);
  ASSERT_TRUE(exported.ok());
  ASSERT_TRUE(write_file_atomically(path("bundle"), exported->packed.bytes).ok());
  fs::create_symlink(path("bundle"), path("link"));
  const auto finds = [&](const std::string& name, Trust trust) {
    return ArtifactStore({.user = "", .read_only = {path(name)}, .trust = trust}, log()).find(sample_key()).has_value();
  };
  EXPECT_TRUE(finds("bundle", Trust::kOwn));
  EXPECT_TRUE(finds("link", Trust::kOwn)) << "as a root may be one";
  fs::permissions(path("bundle"), fs::perms(0666));
  EXPECT_FALSE(finds("bundle", Trust::kOwn));
  EXPECT_EQ(events("bad_bundle"), 1);
  EXPECT_FALSE(finds("link", Trust::kOwn));
  EXPECT_TRUE(finds("bundle", Trust::kAll));
  fs::permissions(path("bundle"), fs::perms(0644));
  if (::geteuid() != 0) GTEST_SKIP() << "only a superuser can give files away";
  ASSERT_EQ(::chown(path("bundle").c_str(), kNobody, kNobody), 0);
  EXPECT_FALSE(finds("bundle", Trust::kOwn));
  EXPECT_TRUE(finds("bundle", Trust::kAll));
}

TEST_F(CacheTrustTest, ACacheOfAnotherUserIsLeftAloneAndOneOfRootIsRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only a superuser can act for two users";
  fs::permissions(folder_->path(), fs::perms(0755));
  for (const auto& entry : fs::recursive_directory_iterator(path("elsewhere"))) {
    fs::permissions(entry.path(), entry.is_directory() ? fs::perms(0755) : fs::perms(0644));
  }
  fs::permissions(path("elsewhere"), fs::perms(0755));
  const CacheDirectories of_root = {.user = "", .read_only = {path("elsewhere")}};
  EXPECT_TRUE(as_another_user([&] { return ArtifactStore(of_root, Log()).find(sample_key()).has_value(); }));

  // A planted cache, whole: entries, folders and all belong to another user.
  for (const auto& entry : fs::recursive_directory_iterator(path("user")))
    ASSERT_EQ(::chown(entry.path().c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(::chown(path("user").c_str(), kNobody, kNobody), 0);
  EXPECT_TRUE(as_another_user([&] { return ArtifactStore(user_only(), Log()).find(sample_key()).has_value(); }))
      << "it is that user's own";
  const auto before = contents("user");
  expect_nothing_used(user_only());
  EXPECT_EQ(contents("user"), before);
  EXPECT_TRUE(ArtifactStore(shared(), log()).find(sample_key()).has_value()) << "HSTUJIT_TRUST_CACHE=1";
  // The root given back, what lies in it is still another's.
  ASSERT_EQ(::chown(path("user").c_str(), 0, 0), 0);
  lines_.clear();
  EXPECT_FALSE(ArtifactStore(user_only(), log()).find(sample_key()).has_value());
  EXPECT_EQ(events("directory_not_used"), 1);
  EXPECT_THAT(bad_files(user_only()), ElementsAre(path("user") + "/v1"));
}

}  // namespace
}  // namespace hstujit
