// Stores that share a remote cache, each with a directory of its own, as the machines of a cluster.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "autotune_cache/remote/remote_layer.h"
#include "autotune_cache/store/tuning_database.h"
#include "compiler/support/hash.h"
#include "tests/autotune_cache/cache_fixture.h"

namespace hstujit {

// Waits for what happens beside the test; false when it does not, however slow the machine is.
template <typename Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class RemoteTest : public CacheTest {
 protected:
  void SetUp() override {
    // The machine that runs the tests may have a proxy.
    ::setenv("no_proxy", "127.0.0.1", 1);
    CacheTest::SetUp();
  }

  CacheLayerPtr remote(const std::string& url) {
    auto parsed = parse_remote_url(url);
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    return std::make_shared<RemoteLayer>(std::move(parsed).value(), options_, log());
  }
  CacheLayers layers(const std::string& directory, const CacheLayerPtr& remote) {
    CacheLayers all = open_layers({.user = path(directory), .read_only = {}}, log());
    if (remote) all.push_back(remote);
    return all;
  }
  std::unique_ptr<ArtifactStore> store(const std::string& directory, const CacheLayerPtr& remote) {
    return std::make_unique<ArtifactStore>(layers(directory, remote), log());
  }
  // One machine makes a kernel, and has sent it at the end.
  void make(const std::string& url, const ArtifactKey& key, const std::string& cubin) {
    EXPECT_TRUE(store("maker", remote(url))->put(key, cubin, sample_info()));
  }
  // The winner that another machine, without anything, finds. Empty: nothing.
  std::string found_by(const std::string& directory, const CacheLayerPtr& remote, const ArtifactKey& key) {
    const auto found = store(directory, remote)->find(key);
    return found ? found->cubin : "";
  }
  std::string lines_with(const std::string& event) const {
    const std::lock_guard lock(lines_mutex_);
    std::string all;
    for (const std::string& line : lines_) {
      if (line.find("," + event + ",") != std::string::npos) all += line + "\n";
    }
    return all;
  }

  static TuningRecord record_of(const std::string& config, double median) {
    TuningRecord record;
    record.key = sample_tuning_key();
    record.workload = "w";
    record.timed = {{config, "w", "s", median, 0.1}};
    return record;
  }

  static std::string entry_path() { return "/cache/ac/" + *artifact_digest(sample_key()); }
  static std::string cubin_path(const std::string& cubin = kCubin) { return "/cache/cas/" + sha256_hex(cubin); }

  static inline const std::string kCubin = cubin_of("a kernel");
  RemoteOptions options_;
};

// Seconds since the object was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace hstujit
