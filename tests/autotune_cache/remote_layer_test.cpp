// The remote layer against a server that keeps what it is given.
#include <fcntl.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/autotune_cache/http_server.h"
#include "tests/autotune_cache/remote_fixture.h"

namespace hstujit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using RemoteLayerTest = RemoteTest;
using Request = HttpServer::Request;

TEST_F(RemoteLayerTest, WhatOneMachineMakesAnotherFindsAndKeeps) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  make(server.url(), sample_key(), kCubin);
  EXPECT_THAT(server.requests(), ElementsAre("PUT " + cubin_path(), "PUT " + entry_path())) << "metadata last";
  EXPECT_EQ(memory.files().at(cubin_path()), kCubin);

  const auto found = store("other", remote(server.url()))->find(sample_key());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cubin, kCubin);
  EXPECT_EQ(found->info, sample_info());
  EXPECT_EQ(found->directory, server.url());
  EXPECT_EQ(found_by("other", nullptr, sample_key()), kCubin) << "the next process does not ask";
  EXPECT_EQ(server.requests().size(), 4u) << "and what came from there is not sent back";
  EXPECT_EQ(events("remote_failed"), 0);
}

TEST_F(RemoteLayerTest, WithoutADirectoryItIsAskedAndToldAllTheSame) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  EXPECT_FALSE(ArtifactStore({remote(server.url())}, log()).put(sample_key(), kCubin, sample_info()));
  const auto found = ArtifactStore({remote(server.url())}, log()).find(sample_key());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cubin, kCubin);
}

TEST_F(RemoteLayerTest, WhatItLacksIsAskedForOnce) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  const auto machine = store("user", remote(server.url()));
  EXPECT_FALSE(machine->find(sample_key()));
  EXPECT_FALSE(machine->find(sample_key()));
  EXPECT_THAT(server.requests(), ElementsAre("GET " + entry_path()));
  EXPECT_EQ(events("remote_failed"), 0) << "that is no failure";
}

TEST_F(RemoteLayerTest, AReaderSendsNothing) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  options_.upload = false;
  make(server.url(), sample_key(), kCubin);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(RemoteLayerTest, RecordsOfTwoMachinesAreMerged) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  const TuningKey key = record_of("{}", 1).key;
  ASSERT_TRUE(TuningDatabase(layers("a", remote(server.url())), log()).add(record_of(R"({"m":64})", 20)).ok());
  // It has not looked before it timed: its directory knows its own candidate alone.
  ASSERT_TRUE(TuningDatabase(layers("b", remote(server.url())), log()).add(record_of(R"({"m":128})", 10)).ok());
  TuningDatabase third(layers("c", remote(server.url())), log());
  const auto found = third.find(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->timed.size(), 2u);
  EXPECT_EQ(found->winner, R"({"m":128})");
  const auto kept = TuningDatabase(layers("c", nullptr), log()).find(key);
  ASSERT_TRUE(kept) << "kept in the directory";
  EXPECT_EQ(*kept, *found);
}

TEST_F(RemoteLayerTest, ARecordForAnotherKeyIsAMiss) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  ASSERT_TRUE(TuningDatabase(layers("a", remote(server.url())), log()).add(record_of(R"({"m":64})", 20)).ok());
  TuningKey wanted = record_of(R"({"m":64})", 20).key;
  const std::string text = memory.files().at("/cache/ac/" + tuning_digest(wanted));
  wanted.bucket = 2048;
  memory.put("/cache/ac/" + tuning_digest(wanted), text);
  EXPECT_FALSE(TuningDatabase(layers("b", remote(server.url())), log()).find(wanted));
  EXPECT_THAT(lines_with("remote_failed"), HasSubstr("it belongs to another key"));
}

// Programs that this process starts, a server that stays for example, must not keep the connection.
TEST_F(RemoteLayerTest, ConnectionsEndWithAnExec) {
  std::atomic<bool> open{false};
  HttpServer server([&](const Request&) {
    while (!open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return HttpServer::answer(404);
  });
  const auto machine = store("user", remote(server.url()));
  std::thread asks([&] { EXPECT_FALSE(machine->find(sample_key())); });
  EXPECT_TRUE(comes_true([&] { return server.requests().size() == 1; }));
  int sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int file = std::stoi(entry.path().filename());
    int type = 0;
    socklen_t size = sizeof(type);
    sockaddr_in address = {};
    socklen_t length = sizeof(address);
    if (::getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) continue;
    if (::getpeername(file, reinterpret_cast<sockaddr*>(&address), &length) != 0 || address.sin_family != AF_INET)
      continue;
    ++sockets;
    EXPECT_NE(::fcntl(file, F_GETFD) & FD_CLOEXEC, 0) << file;
  }
  EXPECT_GE(sockets, 2) << "libcurl's and the server's";
  open = true;
  asks.join();
}

// It might find locks that threads of its parent held at the fork.
TEST_F(RemoteLayerTest, AForkedChildDoesWithoutItAndEnds) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends a child of a process with threads that starts one";
#endif
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  make(server.url(), sample_key(), kCubin);
  make(server.url(), sample_key("[]"), kCubin);
  options_.last_wait = std::chrono::seconds(60);
  auto machine = store("parent", remote(server.url()));
  ASSERT_TRUE(machine->find(sample_key()));  // a connection is open, and then a thread exists
  ASSERT_TRUE(machine->put(sample_key("{}"), kCubin, sample_info()));
  std::unique_lock lines(lines_mutex_);  // the test's own lock is not to be what the child waits for
  std::vector<std::thread> others;
  std::atomic<bool> forked{false};
  for (int i = 0; i < 8; ++i) others.emplace_back([&forked] { forked.wait(false); });
  const pid_t child = ::fork();
  lines.unlock();
  if (child == 0) {
    ::alarm(60);
    const bool missed = !machine->find(sample_key("[]"));
    const bool ill = !machine->layers().back()->health().ok();
    const bool kept = machine->put(sample_key("[0]"), kCubin, sample_info());
    // The C library now gives back the stacks of the parent's threads, where it does not keep so many.
    std::thread([] {}).join();
    machine.reset();
    ::_exit((missed ? 0 : 1) + (ill ? 0 : 2) + (kept ? 0 : 4));
  }
  forked = true;
  forked.notify_all();
  for (std::thread& other : others) other.join();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(machine->find(sample_key("[]"))) << "the parent goes on";
  machine.reset();
  EXPECT_EQ(found_by("third", remote(server.url()), sample_key("{}")), kCubin) << "what it had to send, too";
}

TEST_F(RemoteLayerTest, ADamagedRecordIsReplaced) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  const std::string path = "/cache/ac/" + tuning_digest(sample_tuning_key());
  memory.put(path, "damaged");
  ASSERT_TRUE(TuningDatabase(layers("user", remote(server.url())), log()).add(record_of(R"({"m":64})", 10)).ok());
  EXPECT_TRUE(parse_record(memory.files().at(path), tuning_digest(sample_tuning_key())).ok());
}

}  // namespace
}  // namespace hstujit
