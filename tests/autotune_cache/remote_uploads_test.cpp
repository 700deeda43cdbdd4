// Uploads of the remote layer, also to servers that refuse it, hang and fail.
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "tests/autotune_cache/http_server.h"
#include "tests/autotune_cache/large_record.h"
#include "tests/autotune_cache/remote_fixture.h"
#include "tests/support/little_memory.h"

namespace hstujit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using RemoteLayerTest = RemoteTest;
using Request = HttpServer::Request;
using Answer = HttpServer::Answer;
using Then = HttpServer::Then;

TEST_F(RemoteLayerTest, ARefusedUploadIsTheLast) {
  for (const int status : {400, 401, 403, 405, 501}) {
    lines_.clear();
    HttpServer server(
        [&](const Request& request) { return HttpServer::answer(request.method == "PUT" ? status : 404); });
    const CacheLayerPtr layer = remote(server.url());
    {
      const auto machine = store(fmt::format("user{}", status), layer);
      EXPECT_TRUE(machine->put(sample_key(), kCubin, sample_info()));
      EXPECT_TRUE(comes_true([&] { return events("remote_uploads_off") == 1; }));
      EXPECT_TRUE(machine->put(sample_key("{}"), kCubin, sample_info()));
      EXPECT_FALSE(machine->find(sample_key("[]"))) << "reading goes on";
    }
    EXPECT_EQ(events("remote_uploads_off"), 1);
    EXPECT_EQ(server.requests().size(), 2u) << "a PUT and a GET";
  }
}

TEST_F(RemoteLayerTest, AServerThatFailsToTakeIsStillAsked) {
  MemoryRemote memory;
  HttpServer server(
      [&](const Request& request) { return request.method == "PUT" ? HttpServer::answer(507) : memory(request); });
  const CacheLayerPtr layer = remote(server.url());
  {
    const auto machine = store("user", layer);
    EXPECT_TRUE(machine->put(sample_key(), kCubin, sample_info()));
    EXPECT_TRUE(comes_true([&] { return events("remote_failed") == 1; }));
    EXPECT_TRUE(machine->put(sample_key("{}"), kCubin, sample_info()));
    EXPECT_FALSE(machine->find(sample_key("[]")));
  }
  EXPECT_EQ(events("remote_failed"), 1);
  EXPECT_EQ(server.requests().size(), 2u) << "a PUT and a GET";
}

TEST_F(RemoteLayerTest, MissingCollectionsAreMade) {
  MemoryRemote memory;
  std::atomic<int> made{0};
  HttpServer server([&](const Request& request) {
    if (request.method == "MKCOL") ++made;
    if (request.method == "MKCOL") return HttpServer::answer(201);
    return made < 2 ? HttpServer::answer(409) : memory(request);
  });
  make(server.url(), sample_key(), kCubin);
  EXPECT_THAT(server.requests(), ElementsAre("PUT " + cubin_path(), "MKCOL /cache/ac/", "MKCOL /cache/cas/",
                                             "PUT " + cubin_path(), "PUT " + entry_path()));
}

TEST_F(RemoteLayerTest, TheEndWaitsForUploadsAndNotForEver) {
  HttpServer server([](const Request&) { return Answer{"", Then::kHang}; });
  options_.last_wait = std::chrono::milliseconds(300);
  options_.times = {.whole = std::chrono::seconds(60), .stalled = std::chrono::seconds(60)};
  auto machine = store("user", remote(server.url()));
  const Stopwatch puts;
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(machine->put(sample_key(fmt::format("{{\"m\":{}}}", i)), kCubin, sample_info()));
  EXPECT_LT(puts.seconds(), 30) << "put does not wait: one request would take 60 s";
  const Stopwatch end;
  machine.reset();
  EXPECT_GE(end.seconds(), 0.3);
  EXPECT_LT(end.seconds(), 15) << "a request under way ends long before its time";
  EXPECT_THAT(lines_with("uploads_dropped"), HasSubstr("count=10"));
}

TEST_F(RemoteLayerTest, WhatIsStoppedAtTheEndIsNoFailure) {
  HttpServer server([](const Request&) { return Answer{"", Then::kHang}; });
  options_.last_wait = std::chrono::milliseconds(100);
  options_.times = {.whole = std::chrono::seconds(60), .stalled = std::chrono::seconds(60)};
  {
    TuningDatabase database(layers("user", remote(server.url())), log());
    ASSERT_TRUE(database.add(record_of("{}", 20)).ok());
    EXPECT_TRUE(comes_true([&] { return server.requests().size() == 1; })) << "what is there is asked for first";
  }
  EXPECT_EQ(server.requests().size(), 1u) << "what is there is unknown, and so not replaced";
  EXPECT_EQ(lines_with("remote_failed"), "");
}

TEST_F(RemoteLayerTest, AFullQueueDropsAndSaysSoOnce) {
  MemoryRemote memory;
  std::atomic<bool> open{false};
  HttpServer server([&](const Request& request) {
    while (!open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return memory(request);
  });
  options_.max_uploads = 2;
  options_.last_wait = std::chrono::seconds(60);
  options_.times = {.whole = std::chrono::seconds(60), .stalled = std::chrono::seconds(60)};
  {
    const auto machine = store("user", remote(server.url()));
    for (int i = 0; i < 8; ++i)
      EXPECT_TRUE(machine->put(sample_key(fmt::format("{{\"m\":{}}}", i)), kCubin, sample_info()));
    open = true;
  }
  EXPECT_EQ(events("uploads_dropped"), 1);
  const size_t kernels = memory.files().size() - 1;  // one cubin for all
  EXPECT_GE(kernels, 2u);
  EXPECT_LE(kernels, 3u) << "two that waited and one under way";
}

TEST_F(RemoteLayerTest, ARecordThatCannotBeReadStaysThere) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer needs all of the address space";
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  const std::string path = "/ac/" + tuning_digest(sample_tuning_key());
  const std::string large = text_of_large_record(sample_tuning_key());
  memory.put("/cache" + path, large);
  // Reading it takes long where other tests keep the processors busy.
  options_.times = {.whole = std::chrono::seconds(60), .stalled = std::chrono::seconds(60)};
  EXPECT_TRUE(with_little_memory(
      [&] {
        EXPECT_TRUE(TuningDatabase(layers("user", remote(server.url())), log()).add(record_of("{}", 10)).ok());
        TuningDatabase other(layers("other", remote(server.url())), log());
        return !other.find(sample_tuning_key()) && events("not_uploaded") == 1 && events("remote_failed") == 0;
      },
      size_t{128} << 20));
  EXPECT_TRUE(memory.files().at("/cache" + path) == large);
  EXPECT_EQ(server.requests().size(), 2u) << "no PUT";
}

TEST_F(RemoteLayerTest, WithoutAnAnswerARecordIsNotSent) {
  HttpServer server([](const Request& request) {
    return request.method == "GET" ? Answer{"", Then::kClose} : HttpServer::answer(201);
  });
  options_.first_pause = std::chrono::milliseconds(0);
  ASSERT_TRUE(TuningDatabase(layers("user", remote(server.url())), log()).add(record_of("{}", 10)).ok());
  EXPECT_EQ(server.requests().size(), 1u) << "no PUT";
  EXPECT_EQ(events("not_uploaded"), 1);
}

}  // namespace
}  // namespace hstujit
