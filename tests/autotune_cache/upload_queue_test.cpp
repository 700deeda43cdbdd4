// The queue of uploads where the system gives no thread for a while, or never.
#include "autotune_cache/remote/upload_queue.h"

#include <sys/resource.h>

#include "tests/autotune_cache/remote_fixture.h"
#include "tests/support/sanitized.h"

namespace hstujit {
namespace {

using std::chrono::milliseconds;

// In a process of its own, which no superuser runs: the limit does not bind one.
class UploadQueueTest : public RemoteTest {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer has threads of its own";
    RemoteTest::SetUp();
  }
  // As with ulimit -u.
  static bool forbid_threads() { return ::getrlimit(RLIMIT_NPROC, &before_) == 0 && set_limit({0, before_.rlim_max}); }
  static bool allow_threads() { return set_limit(before_); }
  bool says(const std::string& event, const std::string& part) const {
    return events(event) == 1 && lines_with(event).find(part) != std::string::npos;
  }

 private:
  static bool set_limit(rlimit limit) { return ::setrlimit(RLIMIT_NPROC, &limit) == 0; }
  static inline rlimit before_;
};

TEST_F(UploadQueueTest, WithoutAThreadUploadsWaitForALaterOne) {
  EXPECT_TRUE(as_another_user([&] {
    std::atomic<int> sent{0};
    const auto upload = [&](const std::atomic<bool>&) { ++sent; };
    {
      UploadQueue queue(8, 100, milliseconds(60000), log());
      if (!forbid_threads()) return false;
      queue.add("a", 1, upload);
      queue.add("b", 1, upload);
      if (!says("uploads_wait", "they go with a later upload") || sent != 0 || !allow_threads()) return false;
      queue.add("c", 1, upload);
    }
    return sent == 3 && events("uploads_dropped") == 0;
  }));
}

TEST_F(UploadQueueTest, WhatNeverHadAThreadIsCountedAtTheEnd) {
  EXPECT_TRUE(as_another_user([&] {
    if (!forbid_threads()) return false;
    {
      UploadQueue queue(8, 100, milliseconds(60000), log());
      for (const char* name : {"a", "b", "b"}) queue.add(name, 1, [](const std::atomic<bool>&) {});
      if (events("uploads_dropped") != 0) return false;
    }
    return says("uploads_dropped", "count=2") && says("uploads_dropped", "no thread");
  }));
}

TEST_F(UploadQueueTest, WhatDoesNotFitIsDroppedAtOnce) {
  std::atomic<bool> open{false};
  std::atomic<int> sent{0};
  const auto upload = [&](const std::atomic<bool>&) {
    while (!open) std::this_thread::sleep_for(milliseconds(1));
    ++sent;
  };
  {
    UploadQueue queue(8, 100, milliseconds(60000), log());
    queue.add("fits", 100, upload);
    queue.add("too large", 101, upload);
    EXPECT_TRUE(says("uploads_dropped", "is full")) << lines_with("uploads_dropped");
    open = true;
  }
  EXPECT_EQ(sent, 1);
}

}  // namespace
}  // namespace hstujit
