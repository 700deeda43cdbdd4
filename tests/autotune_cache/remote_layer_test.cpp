// The remote layer against a server that keeps what it is given, and against those that lie, hang and fail.
#include <fcntl.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "compiler/support/hash.h"
#include "tests/autotune_cache/http_server.h"
#include "tests/autotune_cache/large_record.h"
#include "tests/autotune_cache/remote_fixture.h"
#include "tests/support/little_memory.h"

namespace hstujit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using RemoteLayerTest = RemoteTest;
using Request = HttpServer::Request;
using Answer = HttpServer::Answer;
using Then = HttpServer::Then;

const std::string kCubin = cubin_of("a kernel");

std::string entry_path() { return "/cache/ac/" + *artifact_digest(sample_key()); }
std::string cubin_path(const std::string& cubin = kCubin) { return "/cache/cas/" + sha256_hex(cubin); }

TEST(RemoteUrlTest, IsTakenApart) {
  const auto parts = [](const char* text) {
    const auto url = parse_remote_url(text);
    return url.ok() ? std::vector{url->base, url->user, url->password} : std::vector{url.status().message()};
  };
  EXPECT_THAT(parts("http://cache"), ElementsAre("http://cache", "", ""));
  EXPECT_THAT(parts("https://cache:8080/a/b//"), ElementsAre("https://cache:8080/a/b", "", ""));
  EXPECT_THAT(parts("http://me:p%40ss%3a@[::1]:80/x"), ElementsAre("http://[::1]:80/x", "me", "p@ss:"));
  EXPECT_THAT(parts("http://me@cache/"), ElementsAre("http://cache", "me", ""));
}

TEST(RemoteUrlTest, WhatIsNoneIsRefusedWithoutItsValue) {
  for (const char* text : {"",
                           "cache",
                           "ftp://cache/",
                           "http://",
                           "http:///x",
                           "http://cache:0",
                           "http://cache:70000",
                           "http://cache:80x/",
                           "http://a b/",
                           "http://cache/?x",
                           "http://cache/#x",
                           "http://[::1/x",
                           "http://[]/x",
                           "HTTP://cache",
                           "http://me:%4@cache",
                           "http://:secret@cache",
                           "http://me%00:secret@cache",
                           "http://me:secret%00@cache",
                           "ftp://me:secret@cache/",
                           "http://me:sec/ret@cache:0/",
                           "http://me:80/secret@cache/",
                           "https://cache/c?sig=secret",
                           "https://cache?sig=secret",
                           "https://cache/c#secret",
                           "http://user:secret",
                           "secret"}) {
    const auto url = parse_remote_url(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(url.status().message(), AllOf(StartsWith("HSTUJIT_REMOTE_CACHE "), HasSubstr("; allowed: http://"),
                                              Not(HasSubstr("secret")), Not(HasSubstr("sec/ret"))))
        << text;
  }
  const auto message = [](const char* text) { return parse_remote_url(text).status().message(); };
  EXPECT_THAT(message("cache:8080"), HasSubstr("does not begin with http:// or https://"));
  EXPECT_THAT(message("http://cache/?x"), HasSubstr("has a blank, \"?\""));
  EXPECT_THAT(message("http://cache:0"), HasSubstr("has no host, or a port"));
  EXPECT_THAT(message("http://me:80/ret@cache/c"), HasSubstr("a \"/\" of the user or password is written %2F"));
  EXPECT_THAT(message("http://:secret@cache"), HasSubstr("has no user before \"@\""));
}

// Pauses are bounded from below only: a busy machine makes each of them longer.
TEST(BackoffTest, DoublesUntilItWorks) {
  using std::chrono::milliseconds;
  using Clock = Backoff::Clock;
  Backoff backoff(milliseconds(40), milliseconds(100));
  Clock::time_point began;  // before what succeeded
  const auto begins = [&] {
    for (;;) {
      const auto before = Clock::now();
      if (const auto attempt = backoff.begin()) {
        began = before;
        return *attempt;
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
  };
  const uint64_t first = begins();
  const uint64_t same_time = begins();
  Clock::time_point from = Clock::now();
  backoff.failed(first);
  backoff.failed(same_time);
  const uint64_t second = begins();
  EXPECT_EQ(second, first + 1) << "one failure, seen by two";
  EXPECT_GE(Clock::now() - from, milliseconds(30)) << "40 ms and at least three quarters of it";
  from = began;
  EXPECT_EQ(begins(), second);
  EXPECT_GE(Clock::now() - from, milliseconds(30)) << "one goes alone, for such a time";
  from = Clock::now();
  backoff.failed(second);
  EXPECT_EQ(begins(), second + 1);
  EXPECT_GE(Clock::now() - from, milliseconds(60)) << "80 ms and at least three quarters of it";
  backoff.failed(second + 1);
  backoff.worked();
  EXPECT_TRUE(backoff.begin());
}

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

// Every answer that is no good entry, and whether it names the lie.
TEST_F(RemoteLayerTest, ALyingRemoteIsAMissAndNothingOfItIsKept) {
  MemoryRemote honest;
  {
    HttpServer server(std::ref(honest));
    make(server.url(), sample_key(), kCubin);
    make(server.url(), sample_key("{}"), cubin_of("of another key"));
  }
  const auto files = honest.files();
  const std::string metadata = files.at(entry_path());
  const std::string other = files.at("/cache/ac/" + *artifact_digest(sample_key("{}")));
  std::string flipped = kCubin;
  flipped[70] ^= 1;
  const std::string page = "<html><body>Sign in to the network</body></html>";
  const std::string start = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
  const struct {
    const char* name;
    Answer to_entry;
    Answer to_cubin;
  } lies[] = {
      {"other bytes", HttpServer::answer(200, metadata), HttpServer::answer(200, flipped)},
      {"fewer bytes", HttpServer::answer(200, metadata), HttpServer::answer(200, kCubin.substr(0, 66))},
      {"more bytes", HttpServer::answer(200, metadata), HttpServer::answer(200, kCubin + "more")},
      {"no bytes", HttpServer::answer(200, metadata), HttpServer::answer(200)},
      {"a cubin cut off",
       HttpServer::answer(200, metadata),
       {"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + kCubin.substr(0, 50), Then::kClose}},
      {"another key's metadata", HttpServer::answer(200, other), HttpServer::answer(200, kCubin)},
      {"changed metadata", HttpServer::answer(200, metadata + "x"), HttpServer::answer(200, kCubin)},
      {"a page for people", HttpServer::answer(200, page), HttpServer::answer(200, page)},
      {"no metadata", HttpServer::answer(200), HttpServer::answer(200, kCubin)},
      {"endless metadata", {start + page, Then::kRepeat}, HttpServer::answer(200, kCubin)},
      {"an endless cubin", HttpServer::answer(200, metadata), {start + kCubin, Then::kRepeat}},
      {"no HTTP", {"hello\r\n\r\n", Then::kClose}, HttpServer::answer(200, kCubin)},
      {"nothing", {"", Then::kClose}, HttpServer::answer(200, kCubin)},
      {"a redirect",
       {"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", Then::kClose},
       HttpServer::answer(200, kCubin)},
  };
  int number = 0;
  for (const auto& lie : lies) {
    SCOPED_TRACE(lie.name);
    lines_.clear();
    HttpServer server([&](const Request& request) {
      return request.path.find("/cas/") == std::string::npos ? lie.to_entry : lie.to_cubin;
    });
    const Stopwatch watch;
    const std::string directory = fmt::format("victim{}", number++);
    const auto machine = store(directory, remote(server.url()));
    EXPECT_FALSE(machine->find(sample_key()));
    EXPECT_FALSE(machine->find(sample_key()));
    EXPECT_LT(watch.seconds(), 5);
    EXPECT_EQ(events("remote_failed"), 1) << lines_with("remote_failed");
    EXPECT_EQ(events("bad_entry"), 0) << "it is said once";
    EXPECT_EQ(found_by(directory, nullptr, sample_key()), "");
  }
}

// libcurl keeps them for as long as they come.
TEST_F(RemoteLayerTest, HeadersAndTrailersAreBounded) {
  MemoryRemote honest;
  {
    HttpServer server(std::ref(honest));
    make(server.url(), sample_key(), kCubin);
  }
  const std::string metadata = honest.files().at(entry_path());
  const auto chunked = [&](const std::string& headers, const std::string& trailers) {
    return fmt::format("HTTP/1.1 200 OK\r\n{}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n{}\r\n", headers,
                       metadata.size(), metadata, trailers);
  };
  const auto lines = [](size_t bytes) {
    std::string all;
    while (all.size() < bytes) all += "name: value\r\n";
    return all;
  };
  constexpr size_t kFew = 1000, kMany = 70000;
  constexpr const char* kTooMany = "the headers and trailers of the answer have more than 65536 bytes";
  const struct {
    std::string answer;
    const char* reason;  // null: it is found
  } cases[] = {
      {chunked(lines(kFew), lines(kFew)), nullptr},
      {chunked(lines(kMany), ""), kTooMany},
      {chunked("", lines(kMany)), kTooMany},
      {chunked(lines(kMany / 2), lines(kMany / 2)), kTooMany},
      {chunked("name: " + std::string(1000000, 'x') + "\r\n", ""),
       "a header line of its answer is too long, or libcurl has no memory"},
  };
  int number = 0;
  for (const auto& each : cases) {
    lines_.clear();
    HttpServer server([&](const Request& request) {
      return request.path == entry_path() ? Answer{each.answer, Then::kClose} : HttpServer::answer(200, kCubin);
    });
    const std::string cubin = found_by(fmt::format("victim{}", number++), remote(server.url()), sample_key());
    EXPECT_EQ(cubin, each.reason == nullptr ? kCubin : "") << number;
    EXPECT_THAT(lines_with("remote_failed"), HasSubstr(each.reason == nullptr ? "" : each.reason)) << number;
  }
}

// Whatever it answers: three look-ups that find nothing took 133 s.
TEST_F(RemoteLayerTest, ASlowRemoteIsUsedAndThenLeftAlone) {
  MemoryRemote memory;
  std::atomic<bool> slow{false};
  HttpServer server([&](const Request& request) {
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return memory(request);
  });
  make(server.url(), sample_key(), kCubin);
  make(server.url(), sample_key("{}"), cubin_of("another"));
  slow = true;
  options_.slow = std::chrono::milliseconds(100);
  for (const bool found : {false, true}) {
    const auto machine = store(found ? "finds" : "misses", remote(server.url()));
    lines_.clear();
    EXPECT_EQ(machine->find(sample_key(found ? "{}" : "[]")).has_value(), found);
    const size_t asked = server.requests().size();
    EXPECT_FALSE(machine->find(sample_key()));
    EXPECT_EQ(server.requests().size(), asked) << "it is left alone";
    EXPECT_THAT(lines_with("remote_failed"), HasSubstr("it takes more than 100 ms to answer"));
  }
}

TEST_F(RemoteLayerTest, ADamagedEntryLeavesTheOthersAndIsReplaced) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  make(server.url(), sample_key(), kCubin);
  make(server.url(), sample_key("{}"), cubin_of("another"));
  memory.put(cubin_path(), "damaged");
  {
    const auto machine = store("user", remote(server.url()));
    EXPECT_FALSE(machine->find(sample_key()));
    EXPECT_TRUE(machine->find(sample_key("{}")));
    EXPECT_TRUE(machine->put(sample_key(), kCubin, sample_info()));
  }
  EXPECT_EQ(found_by("third", remote(server.url()), sample_key()), kCubin);
}

TEST_F(RemoteLayerTest, ARemoteThatGoesOnLyingIsLeftAlone) {
  HttpServer server([](const Request&) { return HttpServer::answer(200, "<html></html>"); });
  const auto machine = store("user", remote(server.url()));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(machine->find(sample_key(fmt::format("{{\"block_m\":{}}}", i))));
  EXPECT_EQ(server.requests().size(), 3u);
  EXPECT_EQ(events("remote_failed"), 1);
}

TEST_F(RemoteLayerTest, AFailingRemoteIsLeftAloneAndAskedAgainLater) {
  std::atomic<bool> works{false};
  MemoryRemote memory;
  HttpServer server([&](const Request& request) { return works ? memory(request) : HttpServer::answer(503); });
  options_.first_pause = std::chrono::milliseconds(1000);
  const auto machine = store("user", remote(server.url()));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(machine->find(sample_key()));
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_THAT(lines_with("remote_failed"), HasSubstr("it answers 503 to GET"));
  works = true;
  make(server.url(), sample_key(), kCubin);
  std::optional<Artifact> found;
  EXPECT_TRUE(comes_true([&] { return (found = machine->find(sample_key())).has_value(); }));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cubin, kCubin);
}

TEST_F(RemoteLayerTest, ADeadRemoteCostsOneAttempt) {
  const BoundPort port;
  const auto machine = store("user", remote(port.url() + "/cache"));
  const Stopwatch watch;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(machine->find(sample_key(fmt::format("{{\"block_m\":{}}}", i))));
  EXPECT_TRUE(machine->put(sample_key(), kCubin, sample_info()));
  EXPECT_LT(watch.seconds(), 3);
  EXPECT_EQ(events("remote_failed"), 1) << lines_with("remote_failed");
}

TEST_F(RemoteLayerTest, ARemoteThatHangsCostsItsTimeOnceForManyThreads) {
  HttpServer server([](const Request&) { return Answer{"", Then::kHang}; });
  options_.times.whole = std::chrono::milliseconds(500);
  const auto machine = store("user", remote(server.url()));
  const Stopwatch watch;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 4; ++k) EXPECT_FALSE(machine->find(sample_key(fmt::format("{{\"m\":{}}}", 8 * i + k))));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(watch.seconds(), 0.45);
  EXPECT_LT(watch.seconds(), 3);
  EXPECT_LE(server.requests().size(), 8u);
  EXPECT_EQ(events("remote_failed"), 1);
}

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
  ASSERT_TRUE(TuningDatabase(layers("a", remote(server.url())), log()).add(record_of("{}", 20)).ok());
  TuningKey wanted = record_of("{}", 20).key;
  const std::string text = memory.files().at("/cache/ac/" + tuning_digest(wanted));
  wanted.bucket = 2048;
  memory.put("/cache/ac/" + tuning_digest(wanted), text);
  EXPECT_FALSE(TuningDatabase(layers("b", remote(server.url())), log()).find(wanted));
  EXPECT_THAT(lines_with("remote_failed"), HasSubstr("it belongs to another key"));
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

// What this process starts, a server that stays for example, must not keep the connection.
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

TEST_F(RemoteLayerTest, ARecordThatCannotBeReadStaysThere) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer needs all of the address space";
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  const std::string path = "/ac/" + tuning_digest(sample_tuning_key());
  const std::string large = text_of_large_record(sample_tuning_key());
  memory.put("/cache" + path, large);
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

TEST_F(RemoteLayerTest, ADamagedRecordIsReplaced) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  const std::string path = "/cache/ac/" + tuning_digest(sample_tuning_key());
  memory.put(path, "damaged");
  ASSERT_TRUE(TuningDatabase(layers("user", remote(server.url())), log()).add(record_of("{}", 10)).ok());
  EXPECT_TRUE(parse_record(memory.files().at(path), tuning_digest(sample_tuning_key())).ok());
}

}  // namespace
}  // namespace hstujit
