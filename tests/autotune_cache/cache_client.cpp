// One of many processes that share a cache directory: it needs every key, "compiles" those that nobody has put yet, and
// checks each byte that it gets, since the bytes of a key follow from the key.
//
//     hstujit_cache_client DIRECTORY SEED [MAX_BYTES]
//
// An empty directory means what the environment says. Log lines go to standard error. Exit code 0: everything was
// right; 1: wrong bytes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "autotune_cache/store/artifact_store.h"
#include "autotune_cache/store/tuning_database.h"
#include "shared_cache.h"

namespace hstujit {
namespace {

int work(const CacheDirectories& directories, const Log& log, unsigned seed, uint64_t max_bytes) {
  std::mt19937 random(seed);
  std::vector<int> keys(kSharedKeys);
  std::iota(keys.begin(), keys.end(), 0);
  std::shuffle(keys.begin(), keys.end(), random);
  ArtifactStore store(directories, log, max_bytes);
  TuningDatabase database(directories, log);
  for (const int number : keys) {
    if (const auto found = store.find(shared_key(number))) {
      if (found->cubin != shared_cubin(number)) return 1;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5));
      store.put(shared_key(number), shared_cubin(number), {.kernel = "k", .nvrtc = "13.0", .library = "0"});
    }
    if (number % 4 != 0) continue;
    const auto record = database.add(shared_record(number, static_cast<int>(seed)));
    if (!record.ok() || record->winner.empty()) return 1;
  }
  // As another process will find them: a miss is allowed, wrong bytes are not.
  ArtifactStore reader(directories, Log());
  for (const int number : keys) {
    const auto found = reader.find(shared_key(number));
    if (found && found->cubin != shared_cubin(number)) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace hstujit

int main(int argc, char** argv) {
  using namespace hstujit;
  if (argc < 3) return 2;
  const Log log([](LogCategory, const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
  CacheDirectories directories = {.user = argv[1], .read_only = {}};
  if (directories.user.empty()) directories = CacheDirectories::from_environment(Environment::of_process(), log);
  const auto seed = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
  return work(directories, log, seed, argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0);
}
