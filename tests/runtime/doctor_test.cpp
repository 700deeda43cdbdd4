// Findings of doctor: each test breaks one thing and sees it named, with what to do and whether kernels still run.
#include <fcntl.h>
#include <sys/stat.h>

#include "autotune_cache/files/checked_json.h"
#include "compiler/generator/generator_digest.h"
#include "compiler/support/read_limits.h"
#include "operations/configs/cache_health.h"
#include "operations/configs/operation.h"
#include "runtime/engine/generator_keys.h"
#include "tests/paths.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Only what doctor looks at is there.
class FakeHost final : public HostBackend {
 public:
  Result<HostKernelPtr> create(const OpSpec&, Direction) const override { return Status(Code::kUnsupported, "a fake"); }
  std::string path() const override { return "fake"; }
};

class DoctorTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    host_ = std::make_shared<FakeHost>();
  }
  std::string at(const std::string& name) const { return (folder_->path() / name).string(); }
  Json diagnosed() {
    EngineOptions options = engine_options();
    options.diagnose = true;
    auto engine = Engine::create(std::move(options));
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return doctor(**engine);
  }
  // The one finding there is, "<severity>, <about>: <problem>; what to do".
  std::string only_finding() {
    const Json report = diagnosed();
    EXPECT_EQ(report["findings"].size(), 1u) << report["findings"].dump(2);
    if (report["findings"].empty()) return "";
    const Json& finding = report["findings"][0];
    EXPECT_EQ(report["healthy"].get<bool>(), finding["severity"] != "error");
    EXPECT_NE(finding["what_to_do"], "");
    return finding["severity"].get<std::string>() + ", " + finding["about"].get<std::string>() + ": " +
           finding["problem"].get<std::string>() + "; " + finding["what_to_do"].get<std::string>();
  }
  void expect_only(const std::string& begin, const std::string& part) {
    const std::string finding = only_finding();
    EXPECT_THAT(finding, ::testing::StartsWith(begin));
    EXPECT_THAT(finding, HasSubstr(part));
  }
  ArtifactKey put(const std::string& config) const {
    const ArtifactKey key = {
        .generator = "g", .spec = "{}", .direction = "forward", .config = config, .options = {"-o"}, .arch = "sm_90a"};
    ArtifactStore store(CacheDirectories{.user = cache_dir(), .read_only = {}}, Log());
    EXPECT_TRUE(store.put(key, cubin_of(config), {}));
    return key;
  }
};

TEST_F(DoctorTest, NothingIsWrongWithAWholeInstallation) {
  put("{}");
  const Json report = diagnosed();
  EXPECT_EQ(report["healthy"], true);
  EXPECT_EQ(report["findings"], Json::array()) << report["findings"].dump(2);
}

TEST_F(DoctorTest, AMissingDriver) {
  values_["HSTUJIT_CUDA_DRIVER"] = "/nowhere/libcuda.so.1";
  expect_only("error, driver: ", "/nowhere/libcuda.so.1");
}

TEST_F(DoctorTest, NoGpu) {
  fake().devices = 0;
  expect_only("error, device: the driver has no GPU", "CUDA_VISIBLE_DEVICES");
}

TEST_F(DoctorTest, AGpuThatCannotBeAsked) {
  fake().failing = "cuDeviceGetName";
  expect_only("error, device: GPU 0: ", "CUDA_ERROR_FAKE");
}

TEST_F(DoctorTest, AMissingCompilerLibraryKeepsOnlyThoseWhoCompileFromRunning) {
  compiler_ = nullptr;
  values_["HSTUJIT_COMPILER_LIBRARY"] = "/nowhere/libhstujit_compiler.so";
  expect_only("error, compiler: ", "/nowhere/libhstujit_compiler.so");
  values_["HSTUJIT_ON_MISS"] = "fail";
  expect_only("warning, compiler: ", "of this very build");
}

TEST_F(DoctorTest, ACompilerLibraryOfAnotherBuild) {
  compiler_ = nullptr;
  values_["HSTUJIT_COMPILER_LIBRARY"] =
      binary_path("/test_libraries/libhstujit_fake_compiler.so");  // whose generator's digest is another one
  expect_only("error, compiler: ", std::string(generator_digest()));
}

TEST_F(DoctorTest, AMissingNvrtc) {
  compiler_->nvrtc_failure = Status(Code::kNoCompiler, "NVRTC: /a is NVRTC 12.2, but 12.4 or newer is needed");
  expect_only("error, nvrtc: NVRTC: /a is NVRTC 12.2, but 12.4", "HSTUJIT_NVRTC");
}

TEST_F(DoctorTest, AnNvrtcTooOldForTheGpu) {
  compiler_->nvrtc_archs = {80, 90};
  EXPECT_EQ(diagnosed()["findings"], Json::array());
  fake().major = 10;
  expect_only("error, nvrtc: NVRTC 13.0 at /a/libnvrtc.so.13 cannot compile for sm_100", "newer NVRTC");
}

TEST_F(DoctorTest, AMissingHostLibrary) {
  host_ = nullptr;
  values_["HSTUJIT_HOST_LIBRARY"] = "/nowhere/libhstujit_host.so";
  expect_only("warning, host_backend: ", "/nowhere/libhstujit_host.so");
}

TEST_F(DoctorTest, AHostLibraryOfAnotherBuild) {
  host_ = nullptr;
  values_["HSTUJIT_HOST_LIBRARY"] = binary_path("/test_libraries/libhstujit_fake_host.so");
  expect_only("warning, host_backend: ", "goes by the generator " + std::string(generator_digest()));
}

TEST_F(DoctorTest, AWorkerOfAnotherBuild) {
  values_["HSTUJIT_WORKER"] = binary_path("/bin/hstujit_fake_worker");
  EXPECT_EQ(diagnosed()["findings"], Json::array());
  for (const std::string generator : {"none", "another"}) {
    ::setenv("FAKE_WORKER_GENERATOR", generator.c_str(), 1);
    expect_only("warning, worker: the worker ", "goes by the generator " + std::string(generator_digest()));
  }
  ::unsetenv("FAKE_WORKER_GENERATOR");
  values_["HSTUJIT_WORKER"] = "/bin/true";
  expect_only("warning, worker: \"/bin/true\": the worker process exited with status 0", "of this very build");
}

TEST_F(DoctorTest, AMissingWorkerKeepsOnlyThoseWhoTuneFromRunning) {
  values_["HSTUJIT_WORKER"] = "/nowhere/hstujit-worker";
  expect_only("warning, worker: ", "/nowhere/hstujit-worker");
  values_["HSTUJIT_ON_MISS"] = "tune";
  expect_only("error, worker: ", "/nowhere/hstujit-worker");
}

TEST_F(DoctorTest, ARecordingThatCannotBeWritten) {
  values_["HSTUJIT_RECORD"] = at("misses");
  EXPECT_EQ(diagnosed()["findings"], Json::array());
  EXPECT_FALSE(fs::exists(at("misses"))) << "only asked about";
  ASSERT_TRUE(write_file_atomically(at("misses"), "").ok());
  EXPECT_EQ(diagnosed()["findings"], Json::array());
  fs::resize_file(at("misses"), kMaxRecordedBytes);
  expect_only("warning, HSTUJIT_RECORD: cannot write", "File too large");
  values_["HSTUJIT_RECORD"] = at("misses") + "/below";
  expect_only("warning, HSTUJIT_RECORD: cannot write", "Not a directory");
  values_["HSTUJIT_RECORD"] = at("no folder/misses");
  expect_only("warning, HSTUJIT_RECORD: cannot write", "No such file or directory");
  fs::create_directory(at("folder"));
  values_["HSTUJIT_RECORD"] = at("folder");
  expect_only("warning, HSTUJIT_RECORD: cannot write", "Is a directory");
}

TEST_F(DoctorTest, ACacheDirectoryThatIsAFileOrALoop) {
  ASSERT_TRUE(write_file_atomically(cache_dir(), "a file").ok());
  expect_only("warning, cache: the cache directory", "is no directory");
  values_["HSTUJIT_CACHE_DIR"] = cache_dir() + "/below";
  expect_only("warning, cache: the cache directory", "\"" + cache_dir() + "\" is no directory");
  fs::create_symlink(at("loop"), at("loop"));
  values_["HSTUJIT_CACHE_DIR"] = at("loop");
  expect_only("warning, cache: the cache directory", "\"" + at("loop") + "\" is no directory");
}

// /proc says that the superuser may write it, and that nothing of its room is free.
TEST_F(DoctorTest, ACacheDirectoryThatNobodyCanMake) {
  values_["HSTUJIT_CACHE_DIR"] = "/proc/hstujit";
  expect_only("warning, cache: the cache directory", "\"/proc/hstujit\" cannot be created");
}

TEST_F(DoctorTest, NoCacheDirectoryAtAll) {
  values_.erase("HSTUJIT_CACHE_DIR");
  expect_only("warning, cache: there is no cache directory", "HSTUJIT_CACHE_DIR");
}

// The superuser may write anywhere, and no test fills a disk.
TEST(CacheHealth, SaysWhatADirectoryLacks) {
  const auto problem = [](const PathHealth& health) {
    const auto findings = user_directory_findings("/c", health);
    return findings.empty() ? std::string() : findings.front().problem;
  };
  PathHealth health = {true, "/c", true, true, uint64_t{64} << 20, "nfs"};
  EXPECT_EQ(problem(health), "") << "a file system of other machines is no problem";
  health.free_bytes = (uint64_t{64} << 20) - 1;
  EXPECT_THAT(problem(health), HasSubstr("has 63 MiB free, less than 64"));
  health.free_bytes.reset();
  EXPECT_EQ(problem(health), "");
  health.writable = false;
  EXPECT_THAT(problem(health), HasSubstr("\"/c\" cannot be written"));
  health.exists = false;
  EXPECT_THAT(problem(health), HasSubstr("\"/c\" cannot be created"));
  EXPECT_TRUE(path_health("/").is_directory);
  EXPECT_GT(path_health("/tmp/not/there").free_bytes.value_or(0), 0u);
  EXPECT_FALSE(path_health("/tmp/not/there").exists);
  EXPECT_TRUE(path_health("not/there").is_directory);
}

TEST(CacheHealth, ARelativePathOfARemovedFolderLeadsNowhere) {
  const fs::path before = fs::current_path();
  auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const fs::path removed = folder->path() / "removed";
  fs::create_directory(removed);
  fs::current_path(removed);
  fs::remove(removed);
  EXPECT_FALSE(path_health("cache").is_directory);
  fs::current_path(before);
}

TEST(CacheHealth, FileSystemsOfOtherMachinesAreNamed) {
  EXPECT_EQ(network_file_system(0x6969), "nfs");
  EXPECT_EQ(network_file_system(0x0BD00BD0), "lustre");
  EXPECT_EQ(network_file_system(static_cast<decltype(statfs::f_type)>(0xFF534D42)), "smb");
  EXPECT_EQ(network_file_system(0xEF53), "") << "ext4";
}

TEST_F(DoctorTest, LayersThatAreNotThereOrBad) {
  values_["HSTUJIT_CACHE_PATH"] = "/nowhere/layer";
  expect_only("warning, HSTUJIT_CACHE_PATH: the cache \"/nowhere/layer\" does not exist", "put a directory");
  ASSERT_TRUE(write_file_atomically(at("bundle"), "no bundle").ok());
  values_["HSTUJIT_CACHE_PATH"] = at("bundle");
  expect_only("warning, HSTUJIT_CACHE_PATH: ", at("bundle"));
  values_["HSTUJIT_ON_MISS"] = "fail";
  expect_only("error, HSTUJIT_CACHE_PATH: ", at("bundle"));
}

TEST_F(DoctorTest, ABundleWithoutTheLibraryThatDecompressesIt) {
  ASSERT_TRUE(write_file_atomically(at("bundle"), "\x28\xb5\x2f\xfd of zstd").ok());
  values_["HSTUJIT_CACHE_PATH"] = at("bundle");
  values_["HSTUJIT_BUNDLE_LIBRARY"] = "/nowhere/libhstujit_bundle.so";
  expect_only("warning, HSTUJIT_CACHE_PATH: ", "/nowhere/libhstujit_bundle.so");
  EXPECT_THAT(only_finding(), HasSubstr("install libhstujit_bundle.so"));
}

TEST_F(DoctorTest, DamagedEntriesAreCounted) {
  put("1");
  for (const char* config : {"2", "3"}) {
    const ArtifactKey key = put(config);
    fs::resize_file(ArtifactFiles(cache_dir(), key.arch, *artifact_digest(key)).cubin, 10);
  }
  // A write in progress is no damage.
  ASSERT_TRUE(write_file_atomically(cache_dir() + "/v1/sm_90a/.a.0123456789abcdef.tmp", "half").ok());
  expect_only("warning, cache: 2 of 3 files in", "hstujit cache verify");
}

TEST_F(DoctorTest, ALinkInACacheIsNamedAndNotFollowed) {
  put("1");
  fs::create_directory_symlink("/", cache_dir() + "/v1/sm_80");
  expect_only("warning, cache: 1 of 2 files in", "it is a symbolic link");
}

TEST_F(DoctorTest, ACacheThatAnybodyMayWriteIsNotUsedUnlessItIsTrusted) {
  put("1");
  fs::permissions(cache_dir(), fs::perms(0777));
  expect_only("warning, cache: the cache \"" + cache_dir() + "\" is neither read nor written: anybody may write it",
              "HSTUJIT_TRUST_CACHE=1");
  const std::string finding = only_finding(), advice = "HSTUJIT_TRUST_CACHE=1";
  EXPECT_EQ(finding.find(advice), finding.rfind(advice)) << "what helps is said once: " << finding;
  EXPECT_EQ(diagnosed()["cache"][0]["ok"], false);
  values_["HSTUJIT_TRUST_CACHE"] = "1";
  EXPECT_EQ(diagnosed()["findings"], Json::array());
  EXPECT_EQ(diagnosed()["cache"][0]["ok"], true);
  values_.erase("HSTUJIT_TRUST_CACHE");
  fs::permissions(cache_dir(), fs::perms(0770));
  const Json report = diagnosed();
  EXPECT_EQ(report["findings"], Json::array());
  EXPECT_EQ(report["cache"][0]["group_writable"], true) << "allowed, and said";
  fs::permissions(cache_dir(), fs::perms(0750));
  EXPECT_FALSE(diagnosed()["cache"][0].contains("group_writable"));
}

TEST_F(DoctorTest, ACacheWhosePlaceAnybodyMayWriteIsNotSaidToBeMadeThere) {
  const std::string open = at("open");
  fs::create_directory(open);
  fs::permissions(open, fs::perms(0777));
  for (const char* name : {"/cache", "/new/cache"}) {
    values_["HSTUJIT_CACHE_DIR"] = open + name;
    expect_only(
        "warning, cache: the cache \"" + open + name + "\" is neither read nor written: anybody may put another",
        "HSTUJIT_TRUST_CACHE=1");
    EXPECT_EQ(diagnosed()["cache"][0]["ok"], false);
  }
  EXPECT_TRUE(fs::is_empty(open));
}

// Nothing of it is damaged: whoever deletes it deletes what another user has compiled.
TEST_F(DoctorTest, WhatIsAnotherUsersIsNotCalledDamaged) {
  if (::geteuid() != 0) GTEST_SKIP() << "only a superuser can give files away";
  const auto expect_trust = [&](const std::string& begin) {
    const std::string finding = only_finding();
    EXPECT_THAT(finding, ::testing::StartsWith(begin));
    EXPECT_THAT(finding, HasSubstr("it belongs to the user 65534"));
    EXPECT_THAT(finding, HasSubstr("set HSTUJIT_TRUST_CACHE=1 (docs/deployment.md)"));
    for (const char* wrong : {"may be deleted", "copy the bundle again", "which uses it all the same"})
      EXPECT_THAT(finding, ::testing::Not(HasSubstr(wrong)));
  };
  put("1");
  const std::string version = cache_dir() + "/v1";
  ASSERT_EQ(::chown(version.c_str(), 65534, 65534), 0);
  expect_trust("warning, cache: 1 of 1 file in \"" + cache_dir() + "\" is not used");
  ASSERT_EQ(::chown(version.c_str(), 0, 0), 0);
  ASSERT_TRUE(write_file_atomically(at("bundle"), "a bundle").ok());
  ASSERT_EQ(::chown(at("bundle").c_str(), 65534, 65534), 0);
  values_["HSTUJIT_CACHE_PATH"] = at("bundle");
  expect_trust("warning, HSTUJIT_CACHE_PATH: ");
}

TEST_F(DoctorTest, FoldersOfTheCacheThatThisUserCannotWrite) {
  const ArtifactKey key = put("1");
  const fs::path closed = ArtifactFiles(cache_dir(), key.arch, *artifact_digest(key)).folder();
  for (const fs::path& folder :
       {folder_->path(), fs::path(cache_dir()), closed.parent_path().parent_path(), closed.parent_path()})
    fs::permissions(folder, fs::perms(0777));
  fs::permissions(closed, fs::perms(0555));
  const uid_t user = ::geteuid();
  if (user == 0) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto findings = folder_findings(CacheTree(cache_dir(), Trust::kAll, Log()));
  ASSERT_EQ(::seteuid(user), 0);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].problem, HasSubstr("cannot write 1 folder of the cache directory \"" + cache_dir() +
                                             "\", such as \"" + closed.native() + "\""));
  EXPECT_THAT(findings[0].what_to_do, HasSubstr("umask 002"));
  fs::permissions(closed, fs::perms(0777));
  EXPECT_EQ(folder_findings(CacheTree(cache_dir(), Trust::kAll, Log())), std::vector<Finding>());
  EXPECT_EQ(folder_findings(CacheTree(at("none"), Trust::kAll, Log())), std::vector<Finding>());
}

TEST_F(DoctorTest, FilesFromTheFuture) {
  const ArtifactKey key = put("1");
  const ArtifactFiles files(cache_dir(), key.arch, *artifact_digest(key));
  fs::last_write_time(files.cubin, fs::file_time_type::clock::now() + std::chrono::minutes(4));
  EXPECT_EQ(diagnosed()["findings"], Json::array()) << "clocks differ a little everywhere";
  fs::last_write_time(files.cubin, fs::file_time_type::clock::now() + std::chrono::hours(2));
  expect_only("warning, cache: 1 file in", "the clocks of this machine and of another");
  const timespec far[2] = {{0, UTIME_OMIT}, {9'246'182'400, 0}};  // 2263-01-01: more nanoseconds than 64 bits hold
  ASSERT_EQ(::utimensat(AT_FDCWD, files.cubin.c_str(), far, 0), 0);
  expect_only("warning, cache: 1 file in", "the clocks of this machine and of another");
}

TEST_F(DoctorTest, AUrlInTheWrongVariableKeepsItsPassword) {
  for (const char* name : {"HSTUJIT_ON_MISS", "HSTUJIT_CACHE_MAX_BYTES", "HSTUJIT_REMOTE_UPLOAD", "HSTUJIT_RECORD"}) {
    const auto before = values_;
    values_[name] = "https://user:secret/word@host/cache";
    const std::string report = diagnosed().dump();
    EXPECT_EQ(report.find("secret"), std::string::npos) << report;
    EXPECT_EQ(report.find("word@"), std::string::npos) << report;
    EXPECT_NE(report.find("https://***@host/cache"), std::string::npos) << report;
    values_ = before;
  }
}

TEST_F(DoctorTest, VariablesWithWhichNoContextCanBeCreated) {
  for (const auto& [name, value] : std::map<std::string, std::string>{{"HSTUJIT_ON_MISS", "panic"},
                                                                      {"HSTUJIT_LENGTH_MODE", "short"},
                                                                      {"HSTUJIT_CACHE_MAX_BYTES", "much"},
                                                                      {"HSTUJIT_CHECK", "maybe"},
                                                                      {"HSTUJIT_TRUST_CACHE", "maybe"},
                                                                      {"HSTUJIT_LINEINFO", "maybe"},
                                                                      {"HSTUJIT_REMOTE_UPLOAD", "2"},
                                                                      {"HSTUJIT_DUMP", "everything"},
                                                                      {"HSTUJIT_FROZEN", "/nowhere/choices.json"}}) {
    const auto before = values_;
    values_[name] = value;
    EngineOptions options;
    options.environment = Environment::of_values(values_);
    EXPECT_FALSE(Engine::create(options).ok()) << name;
    expect_only("error, " + name + ": ", value);
    values_ = before;
  }
}

TEST_F(DoctorTest, ChoicesOfAnotherBuild) {
  TuningKey key;
  key.op = "hstu_attention";
  key.spec = R"({"op":"hstu_attention"})";
  KernelConfig config;
  config.skeleton = "attention/sm90_forward";
  std::string text = *format_choices({{key, config}});
  const std::string digest = kernel_generator(key.op, config);
  text.replace(text.find(digest), digest.size(), std::string(64, '0'));
  Json json = Json::parse(text);
  json.erase("checksum");
  ASSERT_TRUE(write_file_atomically(at("choices"), *format_checked_json(json, kMaxChoicesBytes)).ok());
  values_["HSTUJIT_FROZEN"] = at("choices");
  expect_only("error, HSTUJIT_FROZEN: ", "of the generator " + std::string(64, '0'));
}

TEST_F(DoctorTest, AnOverrideThatWasForgotten) {
  values_["HSTUJIT_OVERRIDE"] = R"({"stages": 2})";
  expect_only("warning, HSTUJIT_OVERRIDE: ", "unset it");
  values_["HSTUJIT_OVERRIDE"] = "stages=2";
  expect_only("error, HSTUJIT_OVERRIDE: ", "allowed: a JSON object of config fields");
  values_["HSTUJIT_OVERRIDE"] = R"({"blockm": 7})";
  expect_only("error, HSTUJIT_OVERRIDE: HSTUJIT_OVERRIDE.blockm (value 7) is not a known field", "did you mean");
}

TEST_F(DoctorTest, VariablesThatAreSpeltWrong) {
  values_["HSTUJIT_CACHEDIR"] = "/x";
  expect_only("warning, HSTUJIT_CACHEDIR: ", "did you mean HSTUJIT_CACHE_DIR?");
  values_["HSTUJIT_CACHEDIR"] = "";
  EXPECT_EQ(diagnosed()["findings"], Json::array()) << "empty is unset";
}

}  // namespace
}  // namespace hstujit::test
