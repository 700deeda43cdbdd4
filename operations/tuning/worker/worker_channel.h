// Messages between the tuner and its worker process: a JSON object and bytes, over a stream socket.
//
// A frame is two 32-bit little-endian sizes, the JSON text, the bytes. Both ends are of one build; a frame that is
// malformed or larger than kLargestPart means that the other end is not a worker, and ends the conversation.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "compiler/support/descriptor.h"
#include "compiler/support/json.h"
#include "runtime/engine/cancellation.h"

namespace hstujit {

struct WorkerMessage {
  nlohmann::ordered_json head;
  std::string body;
};

// Bytes of either part of a frame, at most: more than any cubin, any list of lengths.
inline constexpr size_t kLargestPart = size_t{256} << 20;

class WorkerChannel {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  enum class End { kClosed, kTimeout, kMalformed };  // why there is no message, or why one was not taken

  // Once `cancellation` is requested, waiting ends as at a deadline.
  explicit WorkerChannel(Descriptor socket, Cancellation cancellation = {})
      : socket_(std::move(socket)), cancellation_(std::move(cancellation)) {}

  // False when the other end is gone or did not take the message in time.
  bool send(const WorkerMessage& message, Deadline deadline);
  // False when there is none; `end` says why.
  bool receive(WorkerMessage* message, Deadline deadline, End* end);

  int descriptor() const { return socket_.number(); }

 private:
  bool wait(short events, Deadline deadline, End* end) const;
  bool write_all(const char* data, size_t size, Deadline deadline);
  bool read_all(char* data, size_t size, Deadline deadline, End* end);
  bool read_part(std::string* part, size_t size, Deadline deadline, End* end);

  Descriptor socket_;
  Cancellation cancellation_;
};

}  // namespace hstujit
