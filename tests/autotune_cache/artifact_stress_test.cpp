// Two dozen processes that write, read and prune the same directory while they are killed at random.
//
// Every cubin says its own key and variant and repeats itself, so that a reader can tell which bytes it got and that
// they are whole. The variants of a key differ, as those of two compiler versions would: the hardest case for a layout
// of two files per entry.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "cache_fixture.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

constexpr int kProcesses = 24;
constexpr int kKeys = 6;
constexpr int kVariants = 3;
constexpr std::chrono::seconds kDuration{6};

ArtifactKey numbered_key(int number) { return sample_key(R"({"block_m":)" + std::to_string(number) + "}"); }

std::string numbered_cubin(int key, int variant) {
  const std::string part = "key " + std::to_string(key) + " variant " + std::to_string(variant) + "\n";
  std::string cubin;
  for (int i = 0; i < 500 * (variant + 1); ++i) cubin += part;
  return cubin_of(cubin);
}

bool is_whole(int key, const std::string& cubin) {
  for (int variant = 0; variant < kVariants; ++variant) {
    if (cubin == numbered_cubin(key, variant)) return true;
  }
  return false;
}

// Exit status of a process: 0 when all it read was whole.
int work(const CacheDirectories& directories, unsigned seed, int rounds) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    ArtifactStore store(directories, Log());  // a new one each round, so that its prune spares nothing
    const int key = static_cast<int>(random() % kKeys);
    const int variant = static_cast<int>(random() % kVariants);
    switch (random() % 4) {
      case 0:
        if (random() % 4 == 0) store.prune({.max_bytes = random() % 100000, .nvrtc = {}});
        break;
      case 1:
        store.put(numbered_key(key), numbered_cubin(key, variant), sample_info());
        break;
      default:
        if (const auto found = store.find(numbered_key(key)); found && !is_whole(key, found->cubin)) return 1;
    }
  }
  return 0;
}

using ArtifactStressTest = CacheTest;

TEST_F(ArtifactStressTest, KilledProcessesLeaveNothingHalfWritten) {
  std::mt19937 random(7);
  std::vector<pid_t> children(kProcesses, 0);
  unsigned seed = 1;
  const auto start = [&](int rounds) {
    const unsigned own_seed = seed++;
    const pid_t child = fork_or_throw();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a failed test leaves no endless processes behind
      ::_exit(work(user_only(), own_seed, rounds));
    }
    return child;
  };
  // Waits for a process that may have been killed; anything else than that or 0 is wrong bytes or a crash.
  const auto check = [](pid_t child) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        << "status " << status;
  };

  constexpr int kEndless = 1'000'000, kLeastKilled = 50;  // a slow machine takes longer
  for (pid_t& child : children) child = start(kEndless);
  int killed = 0;
  const auto end = std::chrono::steady_clock::now() + kDuration;
  while (killed < kLeastKilled || std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + random() % 10));
    pid_t& child = children[random() % kProcesses];
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    check(child);
    ++killed;
    child = start(kEndless);
  }
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    check(child);
  }

  // Survivors that end by themselves, among what the killed left behind.
  for (pid_t& child : children) child = start(20);
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }

  // Whatever state the entries are in, each can be put and read again.
  ArtifactStore store(user_only(), log());
  for (int key = 0; key < kKeys; ++key) {
    ASSERT_TRUE(store.put(numbered_key(key), numbered_cubin(key, 0), sample_info()));
    const auto found = store.find(numbered_key(key));
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(is_whole(key, found->cubin));
  }

  // The leftovers of the killed are temporaries, which go once they are old.
  for_each_file(version_folder(path("user")), [](const fs::path& file) {
    if (is_abandoned_temporary(file)) set_age(file, std::chrono::hours(2));
  });
  store.prune({});
  for (const VerifiedFile& file : store.verify()) EXPECT_EQ(file.problem, "") << file.path;
}

}  // namespace
}  // namespace hstujit
