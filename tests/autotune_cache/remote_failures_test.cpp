// Look-ups in the remote layer, of servers that lie, hang and fail.
#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "tests/autotune_cache/http_server.h"
#include "tests/autotune_cache/remote_fixture.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;

using RemoteLayerTest = RemoteTest;
using Request = HttpServer::Request;
using Answer = HttpServer::Answer;
using Then = HttpServer::Then;

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

}  // namespace
}  // namespace hstujit
