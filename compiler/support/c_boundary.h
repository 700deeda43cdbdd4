// Common code of the C functions between libraries: a status goes out as its code and its sentence, and no exception
// does.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

// Room for a sentence on the caller's side.
inline constexpr size_t kBoundaryErrorBytes = 1024;

// Writes a sentence, cut to `error_size` bytes with the NUL; nothing where there is no room.
inline void write_sentence(std::string_view sentence, char* error, size_t error_size) {
  if (error == nullptr || error_size == 0) return;
  const size_t length = std::min(sentence.size(), error_size - 1);
  std::memcpy(error, sentence.data(), length);
  error[length] = '\0';
}

// Runs `body`, which returns a Status, writes its sentence and returns its code. `library` is the subject of the
// sentences for exceptions: "the host backend".
template <typename Body>
int guarded_call(std::string_view library, char* error, size_t error_size, const Body& body) {
  Status status;
  try {
    status = body();
  } catch (const std::bad_alloc&) {
    status = Status(Code::kOutOfMemory, fmt::format("{} ran out of memory", library));
  } catch (const std::exception& exception) {
    status = Status(Code::kInternal, fmt::format("{} failed: {}", library, exception.what()));
  }
  write_sentence(status.message(), error, error_size);
  return static_cast<int>(status.code());
}

}  // namespace hstujit
