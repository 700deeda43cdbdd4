// Status and Result: how every fallible function in the project reports what went wrong.
//
// A message is one sentence that names the argument, its value and what is allowed; it reaches users
// unchanged through hstujit_last_error(). Exceptions are for bugs only and are caught in runtime/capi.
#pragma once

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hstujit {

// Mirrors hstujit_status in include/hstujit/hstujit.h, value by value.
enum class Code : int {
  kOk = 0,
  kInvalidArgument = 1,  // a value the caller gave is not allowed
  kInvalidConfig = 2,    // JSON that is malformed or asks for something that is not allowed
  kUnsupported = 3,      // valid, but this device, dtype or build cannot do it
  kNotFound = 4,         // a file, an op, a cached kernel that must exist does not
  kNoDriver = 5,         // libcuda is missing or unusable
  kNoCompiler = 6,       // libnvrtc or the compiler library is missing or unusable
  kNoDevice = 7,         // the driver works, but there is no such device
  kCompileFailed = 8,    // the generated source was rejected, or the result is unusable
  kDriverError = 9,      // a CUDA driver call failed
  kCacheMiss = 10,       // policy "fail": the kernel is not in any cache layer
  kNotPrepared = 11,     // launch before prepare, or inside a graph capture with a cold key
  kOutOfMemory = 12,
  kCheckFailed = 13,  // a result disagreed with the reference
  kIo = 14,
  kInternal = 15,
};

// A code that crossed a boundary as a number; kInternal for a number that is none.
inline Code code_from(int value) {
  const bool known = value >= static_cast<int>(Code::kOk) && value <= static_cast<int>(Code::kInternal);
  return known ? static_cast<Code>(value) : Code::kInternal;
}

std::string_view code_name(Code code);  // "ok" "invalid_argument" ...

// The parts of a sentence about an argument, for callers who have words of their own for them. Text as the sentence
// shows it; empty where the sentence has no such part.
struct ErrorFields {
  std::string argument;  // "q", "q.shape[1]", "score"
  std::string value;     // "7", "\"relu3\""
  std::string allowed;   // "a multiple of 8 from 8 to 256"
  std::string hint;      // what may be done
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  // "<argument> is <value>; it must be <allowed>; <hint>"
  Status(Code code, ErrorFields fields);
  // Fields whose sentence has other words.
  Status(Code code, std::string message, ErrorFields fields)
      : code_(code), message_(std::move(message)), fields_(std::make_shared<const ErrorFields>(std::move(fields))) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // Null where only the sentence is known.
  const ErrorFields* fields() const { return fields_.get(); }

  // The same failure, with where it happened put in front of the sentence.
  Status with_context(const std::string& context) const {
    Status status = *this;
    if (!ok()) status.message_ = context + ": " + message_;
    return status;
  }

 private:
  Code code_ = Code::kOk;
  std::string message_;
  std::shared_ptr<const ErrorFields> fields_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}        // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    assert(!std::get<Status>(state_).ok());
  }

  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace hstujit

// Returns from the calling function when `expression` (a Status) failed.
#define HSTUJIT_RETURN_IF_ERROR(expression)                         \
  do {                                                              \
    if (auto status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define HSTUJIT_CONCAT_INNER(a, b) a##b
#define HSTUJIT_CONCAT(a, b) HSTUJIT_CONCAT_INNER(a, b)
// HSTUJIT_ASSIGN_OR_RETURN(auto x, f()): x is the value, or the calling function returns the failure.
#define HSTUJIT_ASSIGN_OR_RETURN(declaration, expression) \
  HSTUJIT_ASSIGN_OR_RETURN_IMPL(HSTUJIT_CONCAT(result_, __LINE__), declaration, expression)
#define HSTUJIT_ASSIGN_OR_RETURN_IMPL(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result.ok()) return result.status();                            \
  declaration = std::move(result).value()
