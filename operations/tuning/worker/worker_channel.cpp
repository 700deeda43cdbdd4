#include "operations/tuning/worker/worker_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "compiler/support/json.h"

namespace hstujit {

namespace {

using Clock = std::chrono::steady_clock;

void put_size(char* to, size_t size) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<char>((size >> (8 * i)) & 0xFF);
}

size_t get_size(const char* from) {
  size_t size = 0;
  for (int i = 0; i < 4; ++i) size |= static_cast<size_t>(static_cast<unsigned char>(from[i])) << (8 * i);
  return size;
}

}  // namespace

bool WorkerChannel::wait(short events, Deadline deadline, End* end) const {
  const int64_t step = cancellation_.is_possible() ? 100 : int64_t{1} << 30;  // ms between looks at it
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd poller{socket_.number(), events, 0};
    const int ready = ::poll(&poller, 1, static_cast<int>(std::clamp<int64_t>(left, 0, step)));
    if (ready > 0) return true;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && left > step && !cancellation_.requested()) continue;
    *end = ready == 0 ? End::kTimeout : End::kClosed;
    return false;
  }
}

bool WorkerChannel::write_all(const char* data, size_t size, Deadline deadline) {
  End end = End::kClosed;
  while (size > 0) {
    if (!wait(POLLOUT, deadline, &end)) return false;
    const ssize_t written = ::send(socket_.number(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return false;
    }
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

bool WorkerChannel::read_all(char* data, size_t size, Deadline deadline, End* end) {
  while (size > 0) {
    if (!wait(POLLIN, deadline, end)) return false;
    const ssize_t got = ::recv(socket_.number(), data, size, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) {
      *end = End::kClosed;
      return false;
    }
    data += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

// Memory grows with what has come: a size alone, which a broken worker may send, costs nothing.
bool WorkerChannel::read_part(std::string* part, size_t size, Deadline deadline, End* end) {
  constexpr size_t kStep = size_t{1} << 20;
  part->clear();
  while (part->size() < size) {
    const size_t come = part->size();
    const size_t next = std::min(size - come, kStep);
    part->resize(come + next);
    if (!read_all(part->data() + come, next, deadline, end)) return false;
  }
  return true;
}

bool WorkerChannel::send(const WorkerMessage& message, Deadline deadline) {
  const std::string head = dump_json(message.head);
  if (head.size() > kLargestPart || message.body.size() > kLargestPart) return false;
  std::array<char, 8> sizes{};
  put_size(sizes.data(), head.size());
  put_size(sizes.data() + 4, message.body.size());
  return write_all(sizes.data(), sizes.size(), deadline) && write_all(head.data(), head.size(), deadline) &&
         write_all(message.body.data(), message.body.size(), deadline);
}

bool WorkerChannel::receive(WorkerMessage* message, Deadline deadline, End* end) {
  std::array<char, 8> sizes{};
  if (!read_all(sizes.data(), sizes.size(), deadline, end)) return false;
  const size_t head_size = get_size(sizes.data());
  const size_t body_size = get_size(sizes.data() + 4);
  *end = End::kMalformed;
  if (head_size > kLargestPart || body_size > kLargestPart) return false;
  std::string head;
  if (!read_part(&head, head_size, deadline, end)) return false;
  if (!read_part(&message->body, body_size, deadline, end)) return false;
  message->head = json_or_null(head, {.depth = kMaxReportDepth});
  *end = End::kMalformed;
  return message->head.is_object();
}

}  // namespace hstujit
