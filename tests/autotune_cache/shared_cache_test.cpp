// Many processes over one cold directory, under everything that a shared file system and a batch system do to them.
//
// Each process is hstujit_cache_client, which exits with 1 for one wrong byte. Faults of the file system come from
// cache_faults.cpp, which is preloaded.
#include "shared_cache.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>
#include <thread>

#include "autotune_cache/store/tuning_database.h"
#include "cache_fixture.h"
#include "tests/paths.h"
#include "tests/support/whole_file.h"

extern char** environ;

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

#ifdef HSTUJIT_CACHE_FAULTS
constexpr int kProcesses = 64;
#else
constexpr int kProcesses = 16;  // each takes some ten times as long under a sanitizer
#endif

using Variables = std::map<std::string, std::string>;  // an empty value removes

class SharedCacheTest : public CacheTest {
 protected:
  struct Client {
    pid_t process = 0;
    fs::path log;
    int status = -1;  // of waitpid

    bool killed() const { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
    bool right() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
  };

  Client start(const std::string& directory, int seed, const std::string& max_bytes = "0",
               const Variables& variables = {}) {
    Client client;
    client.log = path("log") + std::to_string(seed);
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (!variables.contains(text.substr(0, text.find('=')))) environment.push_back(text);
    }
    for (const auto& [name, value] : variables) {
      if (!value.empty()) environment.push_back(name + "=" + value);
    }
    std::vector<char*> envp;
    for (std::string& entry : environment) envp.push_back(entry.data());
    envp.push_back(nullptr);
    const std::string number = std::to_string(seed), program = binary_path("/bin/hstujit_cache_client");
    client.process = fork_or_throw();
    if (client.process == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (std::freopen(client.log.c_str(), "w", stderr) == nullptr) ::_exit(3);
      ::execle(program.c_str(), program.c_str(), directory.c_str(), number.c_str(), max_bytes.c_str(),
               static_cast<char*>(nullptr), envp.data());
      ::_exit(3);
    }
    return client;
  }
  static void wait(Client& client) { ::waitpid(client.process, &client.status, 0); }
  void run(Client client, const char* what) {
    wait(client);
    EXPECT_TRUE(client.right()) << what << ": status " << client.status << "\n" << *whole_file(client.log);
  }
  // How many lines of its log have this event.
  static int events_of(const Client& client, const std::string& event) {
    const std::string text = *whole_file(client.log);
    int count = 0;
    for (size_t at = text.find("," + event + ","); at != std::string::npos; at = text.find("," + event + ",", at + 1)) {
      ++count;
    }
    return count;
  }
  std::vector<Client> start_all(const std::string& max_bytes, const Variables& variables) {
    std::vector<Client> clients;
    for (int i = 0; i < kProcesses; ++i) clients.push_back(start(path("user"), i + 1, max_bytes, variables));
    return clients;
  }

  // Checks what is left once the leftovers of killed and failed writers are old: nothing of them, and nothing bad.
  void expect_swept() {
    for_each_file(version_folder(path("user")), [](const fs::path& file) { set_age(file, std::chrono::hours(2)); });
    ArtifactStore store(user_only(), log());
    store.prune({});
    for (const VerifiedFile& file : store.verify()) EXPECT_EQ(file.problem, "") << file.path;
    for_each_file(path("user"), [](const fs::path& file) { EXPECT_FALSE(is_abandoned_temporary(file)) << file; });
  }
  // Whether every key is there, with its own bytes.
  void expect_complete() {
    ArtifactStore store(user_only(), log());
    TuningDatabase database(user_only(), log());
    for (int key = 0; key < kSharedKeys; ++key) {
      const auto found = store.find(shared_key(key));
      ASSERT_TRUE(found.has_value()) << key;
      EXPECT_EQ(found->cubin, shared_cubin(key));
      EXPECT_EQ(database.find(shared_record(key, 1).key).has_value(), key % 4 == 0) << key;
    }
  }
};

TEST_F(SharedCacheTest, SurvivorsOfAColdStartWithRandomKillsAreRight) {
  std::mt19937 random(11);
  std::vector<Client> clients = start_all("0", {});
  std::vector<size_t> order(clients.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  order.resize(kProcesses / 2);
  for (const size_t victim : order) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 12));
    ::kill(clients[victim].process, SIGKILL);
  }
  int killed = 0;
  int right = 0;
  for (Client& client : clients) {
    wait(client);
    killed += client.killed() ? 1 : 0;
    right += client.right() ? 1 : 0;
    EXPECT_TRUE(client.killed() || client.right()) << "status " << client.status << "\n" << *whole_file(client.log);
  }
  EXPECT_GE(killed, kProcesses / 8) << "the others were done before";
  EXPECT_GE(right, kProcesses / 2);
  expect_complete();
  expect_swept();
  expect_complete();
}

TEST_F(SharedCacheTest, ABoundThatEvictsAllTheTimeHarmsNobody) {
  constexpr uint64_t kBound = 400'000;  // a fifth of what they need
  for (Client& client : start_all(std::to_string(kBound), {})) {
    wait(client);
    EXPECT_TRUE(client.right()) << "status " << client.status << "\n" << *whole_file(client.log);
  }
  ArtifactStore store(user_only(), log());
  store.prune({.max_bytes = kBound, .nvrtc = {}});
  uint64_t bytes = 0;
  for (const StoredArtifact& entry : store.list()) bytes += entry.bytes;
  EXPECT_LE(bytes, kBound);
  expect_swept();
}

TEST_F(SharedCacheTest, WithoutAnyPlaceForACacheKernelsLiveInMemory) {
  Client client = start("", 1, "0", {{"HOME", ""}, {"XDG_CACHE_HOME", ""}, {"HSTUJIT_CACHE_DIR", ""}});
  run(client, "no HOME");
  EXPECT_EQ(events_of(client, "no_directory"), 1);
}

// Files, folders, sockets, pipes and links that are nobody's, where entries would be: a miss with one warning each,
// which the next put replaces.
class ForeignFileTest : public SharedCacheTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static void put_there(const std::string& kind, const fs::path& at) {
    fs::remove_all(at);
    if (kind == "Pipe") {
      ASSERT_EQ(::mkfifo(at.c_str(), 0666), 0);
    } else if (kind == "Socket") {
      const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
      sockaddr_un address = {};
      address.sun_family = AF_UNIX;
      // A socket's name is short, so it is made elsewhere and renamed.
      const std::string name = (fs::temp_directory_path() / ("hstujit-socket-" + std::to_string(::getpid()))).native();
      ASSERT_LT(name.size(), sizeof(address.sun_path));
      name.copy(address.sun_path, name.size());
      ASSERT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
      ::close(descriptor);
      ASSERT_EQ(::rename(name.c_str(), at.c_str()), 0) << "both must be on one file system";
    } else if (kind == "LinkInALoop") {
      fs::create_symlink(at, at);
    } else if (kind == "EndlessDevice") {
      fs::create_symlink("/dev/zero", at);
    } else if (kind == "Folder") {
      fs::create_directories(at / "with" / "contents");
    } else {
      ASSERT_TRUE(write_file_atomically(at, "\xff\xfe no UTF-8").ok());
    }
  }
};

TEST_P(ForeignFileTest, IsAMissWithOneWarningAndReplaced) {
  ::alarm(60);  // whoever waits for a pipe's writer waits for ever
  {
    ArtifactStore store(user_only(), log());
    ASSERT_TRUE(store.put(shared_key(0), shared_cubin(0), sample_info()));
    ASSERT_TRUE(TuningDatabase(user_only(), log()).add(shared_record(0, 1)).ok());
  }
  const ArtifactFiles files = files_of(shared_key(0));
  const fs::path record = record_file(path("user"), tuning_digest(shared_record(0, 1).key));
  for (const fs::path& file : {files.cubin, files.metadata}) {
    put_there(GetParam(), file);
    lines_.clear();
    ArtifactStore store(user_only(), log());
    EXPECT_FALSE(store.find(shared_key(0)).has_value());
    EXPECT_FALSE(store.find(shared_key(0)).has_value());
    EXPECT_EQ(events("bad_entry"), 1) << file;
    store.list();
    store.verify();
    store.prune({.max_bytes = uint64_t{1} << 40, .nvrtc = "none"});
    EXPECT_TRUE(store.put(shared_key(0), shared_cubin(0), sample_info())) << file;
    const auto found = store.find(shared_key(0));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->cubin, shared_cubin(0));
  }
  put_there(GetParam(), record);
  lines_.clear();
  TuningDatabase database(user_only(), log());
  EXPECT_FALSE(database.find(shared_record(0, 1).key).has_value());
  EXPECT_FALSE(database.find(shared_record(0, 1).key).has_value());
  EXPECT_EQ(events("bad_record"), 1);
  EXPECT_EQ(database.list().size(), 0u);
  EXPECT_TRUE(database.add(shared_record(0, 1)).ok()) << "merged, kept or not";
  ::alarm(0);
}

INSTANTIATE_TEST_SUITE_P(All, ForeignFileTest,
                         ::testing::Values("Pipe", "Socket", "LinkInALoop", "EndlessDevice", "Folder", "OtherBytes"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(SharedCacheTest, ForeignNamesAreLeftAloneAndInNobodysWay) {
  ArtifactStore store(user_only(), log());
  ASSERT_TRUE(store.put(shared_key(0), shared_cubin(0), sample_info()));
  const fs::path folder = files_of(shared_key(0)).cubin.parent_path();
  const fs::path foreign[] = {folder / "no \xff text",         folder / "README",
                              folder / ".nfs000000012",        version_folder(path("user")) / "\xc3\x28",
                              path("user") + "/v1/sm_90a/x.y", path("user") + "/v1/tuning"};
  for (const fs::path& file : foreign) ASSERT_TRUE(write_file_atomically(file, "foreign").ok());
  fs::create_directory_symlink(version_folder(path("user")), folder / "up");
  fs::create_directory_symlink("loop", folder / "loop");
  for (const fs::path& file : foreign) set_age(file, std::chrono::hours(48));
  store.prune({.max_bytes = 0, .nvrtc = {}});
  EXPECT_EQ(store.list().size(), 1u) << "this store has put it";
  int named = 0;
  for (const VerifiedFile& file : store.verify()) named += file.problem == "it is not a file of the cache" ? 1 : 0;
  EXPECT_EQ(named, 5) << "the files below sm_90a, and the one beside it";
  for (const fs::path& file : foreign) EXPECT_TRUE(fs::exists(file)) << file;
  EXPECT_TRUE(store.find(shared_key(0)).has_value());
}

// A preloaded library and a sanitizer's own do not go together.
class FaultTest : public SharedCacheTest {
 protected:
  void SetUp() override {
#ifndef HSTUJIT_CACHE_FAULTS
    GTEST_SKIP() << "this build has sanitizers, whose libraries must be the first ones loaded";
#endif
    SharedCacheTest::SetUp();
  }
  Variables faults(Variables variables) const {
#ifdef HSTUJIT_CACHE_FAULTS
    variables["LD_PRELOAD"] = binary_path("/test_libraries/libhstujit_cache_faults.so");
#endif
    variables["CACHE_FAULTS_ROOT"] = path("user");
    return variables;
  }
};

TEST_F(FaultTest, NoLockIsTakenAndSlowAndStaleListingsGiveNoWrongBytes) {
  const Variables variables =
      faults({{"CACHE_FAULTS_LOCKS", path("locks")}, {"CACHE_FAULTS_SLOW", "2000"}, {"CACHE_FAULTS_STALE", "300"}});
  std::mt19937 random(5);
  std::vector<Client> clients = start_all("0", variables);
  for (int i = 0; i < 12; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
    ::kill(clients[static_cast<size_t>(i)].process, SIGKILL);
  }
  for (Client& client : clients) {
    wait(client);
    EXPECT_TRUE(client.killed() || client.right()) << "status " << client.status << "\n" << *whole_file(client.log);
  }
  EXPECT_FALSE(fs::exists(path("locks"))) << *whole_file(path("locks"));
  expect_swept();
  // On a file system that answers truly again, whatever was kept is right, and the rest can be put.
  Client after = start(path("user"), kProcesses + 1);
  run(after, "after the faults");
  expect_complete();
}

// That the library is preloaded, and fails what it is told to.
TEST_F(FaultTest, AFullDiskMeansMemoryOnlyWithOneWarning) {
  Client client = start(path("user"), 1, "0", faults({{"CACHE_FAULTS_FULL", "1000"}}));
  run(client, "a full disk");
  EXPECT_EQ(events_of(client, "directory_not_writable"), 2) << "one of the kernels and one of the tuning records";
  EXPECT_THAT(*whole_file(client.log), HasSubstr("No space left on device"));
  for_each_file(path("user"), [](const fs::path& file) { ADD_FAILURE() << file << " was left"; });
}

TEST_F(FaultTest, ADiskThatIsFullNowAndThenLeavesNothingHalfWritten) {
  std::vector<Client> clients = start_all("0", faults({{"CACHE_FAULTS_FULL", "300"}}));
  int warned = 0;
  for (Client& client : clients) {
    wait(client);
    EXPECT_TRUE(client.right()) << "status " << client.status << "\n" << *whole_file(client.log);
    EXPECT_LE(events_of(client, "directory_not_writable"), 2);
    warned += events_of(client, "directory_not_writable");
  }
  EXPECT_GT(warned, 0);
  for_each_file(path("user"), [](const fs::path& file) { EXPECT_FALSE(is_abandoned_temporary(file)) << file; });
  ArtifactStore store(user_only(), log());
  for (int key = 0; key < kSharedKeys; ++key) {
    const auto found = store.find(shared_key(key));
    EXPECT_TRUE(!found || found->cubin == shared_cubin(key)) << key;
  }
  EXPECT_EQ(events("bad_entry"), 0) << "a cubin without metadata is no entry";
  expect_swept();
}

}  // namespace
}  // namespace hstujit
