// Frames that come through the socket between the tuner and a worker, and what either end makes of it.
#include <sys/socket.h>

#include <array>

#include "operations/tuning/worker/worker_channel.h"
#include "operations/tuning/worker/worker_compile.h"
#include "runtime/dispatch/bench_problem.h"
#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

namespace {

struct Ends {
  Descriptor near;
  Descriptor far;
};

Ends socket_pair() {
  std::array<int, 2> ends{};
  expect(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "there are sockets");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

WorkerChannel::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(5); }

void check_message(const WorkerMessage& message) {
  const Json& head = message.head;
  expect(head.is_object(), "the head of a message is an object");
  if (head.contains("problem")) parsed(parse_bench_problem(head["problem"]));
  if (head.contains("request")) parsed(parse_compile_request(head["request"]));
  parsed(take_blobs(message));

  auto [near, far] = socket_pair();
  WorkerChannel sender(std::move(near));
  WorkerChannel receiver(std::move(far));
  expect(sender.send(message, soon()), "a message that was received can be sent");
  WorkerMessage again;
  WorkerChannel::End end = WorkerChannel::End::kClosed;
  expect(receiver.receive(&again, soon(), &end), "a message that is sent is received");
  expect(again.head == head && again.body == message.body, "a message that is sent is received as the same");
}

}  // namespace

void worker_frames(std::string_view input) {
  constexpr size_t kLargestInput = 8 << 10;  // and what is written of it again fit the buffer of a socket
  input = input.substr(0, kLargestInput);
  auto [near, far] = socket_pair();
  expect(::send(near.number(), input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()) || input.empty(),
         "the input fits the socket");
  ::shutdown(near.number(), SHUT_WR);
  WorkerChannel channel(std::move(far));
  WorkerMessage message;
  WorkerChannel::End end = WorkerChannel::End::kTimeout;
  while (channel.receive(&message, soon(), &end)) check_message(message);
  expect(end != WorkerChannel::End::kTimeout, "a socket that has closed is waited for no longer");
}

}  // namespace hstujit::fuzz
