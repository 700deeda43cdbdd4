// The boundary between C and C++: handles, the thread's last error, the place where exceptions become statuses.
#pragma once

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <system_error>

#include "compiler/spec/config.h"
#include "hstujit/hstujit.h"
#include "runtime/dispatch/miss_record.h"
#include "runtime/dispatch/op.h"
#include "runtime/engine/engine.h"

namespace hstujit::capi {
class KeptOps;
}

struct hstujit_context {
  hstujit::EnginePtr engine;
  std::shared_ptr<hstujit::capi::KeptOps> ops = {};  // of calls
};

struct hstujit_config {
  // Origin of a config; the folder holds files that it names.
  struct Source {
    std::string text, origin, folder;
    bool is_recording = false;
  };
  Source source;
  hstujit::Config config;                       // of a recording in libhstujit_operations.so alone
  std::optional<hstujit::Recording> recording;  // in libhstujit_operations.so
};

struct hstujit_op {
  std::unique_ptr<hstujit::Op> op;
};

namespace hstujit::capi {

// Keeps the sentence for hstujit_last_error and returns the code. Where there is no memory for it, it says that.
hstujit_status finish(const Status& status) noexcept;
// Where memory ran out.
hstujit_status finish_without_memory() noexcept;

// kInvalidArgument: "<name> is a null pointer; <what it must be>".
Status null_pointer(const char* name, const char* must_be);

// The sizes that the structs of hstujit.h had when they were first published. They never change: members are added at
// the end.
inline constexpr size_t kFirstContextOptions = 48;
inline constexpr size_t kFirstProblem = 24;
inline constexpr size_t kFirstRunOptions = 96;
inline constexpr size_t kFirstExportOptions = 16;
inline constexpr size_t kFirstArgument = 24;
inline constexpr size_t kFirstOpOptions = 24;
inline constexpr size_t kFirstErrorFields = 40;
inline constexpr size_t kFirstCallArgument = 40;
inline constexpr size_t kFirstCallRows = 24;

// Fails unless `size`, the first member of struct `name`, says at least the first published size of that struct, and
// one that a struct with such members has: one in the midst of a member is none of a caller's of any version.
Status check_size(const char* name, size_t size, size_t smallest);

// Reads the bits of a caller's enumeration, which may not be a value of its type: C++ may not read such a one.
template <typename Enumeration>
int number_of(const Enumeration& value) {
  static_assert(sizeof(Enumeration) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

// Struct `name` of a caller of any version, as this library knows it. What an older caller's does not have is 0; what a
// newer caller's has besides is not looked at. `first` is the size that was published first.
template <typename T>
Result<T> read_struct(const char* name, const T* given, size_t first) {
  size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  HSTUJIT_RETURN_IF_ERROR(check_size(name, size, first));
  T known{};
  std::memcpy(&known, given, std::min(size, sizeof(T)));
  return known;
}

// Writes `known` to struct `name` of a caller of any version, who has set its size.
template <typename T>
Status write_struct(const char* name, T known, size_t first, T* out) {
  HSTUJIT_RETURN_IF_ERROR(check_size(name, out->size, first));
  known.size = out->size;
  std::memcpy(static_cast<void*>(out), &known, std::min(out->size, sizeof(T)));
  return {};
}

// kInvalidArgument for a recording's handle: its buckets are of the recorder's length mode, so only tuning takes one.
Status refuse_recording(const hstujit_config& config);

// Copies text into `out`, which was checked for null.
Status give_text(const std::string& text, hstujit_text* out);
// The same of a report. Paths, names of devices and variables may be no UTF-8: such bytes are replaced.
Status give_report(const Json& report, hstujit_text* out);

// Status for a thread or a lock that the system does not give: kOutOfMemory.
Status system_failure(const std::system_error& error);

// Status of the exception that is being handled, any but std::bad_alloc.
hstujit_status finish_exception() noexcept;

// Rounds to nearest, as NVRTC, estimates and kernels of the host need it, whatever the calling thread had set. Threads
// that are made meanwhile do so, too.
class RoundingToNearest {
 public:
  RoundingToNearest() : mode_(std::fegetround()) {
    if (mode_ != FE_TONEAREST) std::fesetround(FE_TONEAREST);
  }
  RoundingToNearest(const RoundingToNearest&) = delete;
  RoundingToNearest& operator=(const RoundingToNearest&) = delete;
  ~RoundingToNearest() {
    if (mode_ != FE_TONEAREST) std::fesetround(mode_);
  }

 private:
  const int mode_;
};

// Runs `body`, which returns a Status; nothing gets past it.
template <typename Body>
hstujit_status guarded(const Body& body) {
  const RoundingToNearest rounding;
  try {
    const Status status = body();
    return status.ok() ? HSTUJIT_OK : finish(status);
  } catch (const std::bad_alloc&) {
    return finish_without_memory();
  } catch (...) {
    return finish_exception();
  }
}

}  // namespace hstujit::capi

// Returns kInvalidArgument from the body of guarded() when `pointer` is null.
#define HSTUJIT_REQUIRE(pointer, must_be)                                              \
  do {                                                                                 \
    if ((pointer) == nullptr) return ::hstujit::capi::null_pointer(#pointer, must_be); \
  } while (false)
