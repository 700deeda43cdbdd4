// Events for people and for scripts: one line each, with a category, a name and key=value fields.
//
// A Log is a value that is passed down from the context; there is no global one. A line reads
//     hstujit,cache,miss,key=4f1c…,layer=user,reason="length differs"
// where a value with a comma, a quote, a blank or a control character in it is quoted.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/support/env.h"
#include "compiler/support/status.h"

namespace hstujit {

enum class LogCategory { kCompile, kCache, kDispatch, kTune };

std::string_view to_string(LogCategory category);  // "compile" "cache" "dispatch" "tune"

// One key=value pair. It refers to text, so it lives no longer than the call that it is an argument of.
struct LogField {
  std::string_view key;
  std::variant<std::string_view, int64_t, double, bool> value;

  LogField(std::string_view name, std::string_view text) : key(name), value(text) {}
  LogField(std::string_view name, const char* text) : key(name), value(std::string_view(text)) {}
  LogField(std::string_view name, const std::string& text) : key(name), value(std::string_view(text)) {}
  LogField(std::string_view name, bool flag) : key(name), value(flag) {}
  LogField(std::string_view name, double number) : key(name), value(number) {}
  template <std::integral Integer>
  LogField(std::string_view name, Integer number) : key(name), value(static_cast<int64_t>(number)) {}
};

// The line of an event, without a newline.
std::string log_line(LogCategory category, std::string_view event, std::initializer_list<LogField> fields);

class Log {
 public:
  // Called from any thread, one line without newline per call.
  using Sink = std::function<void(LogCategory category, const std::string& line)>;

  Log() = default;  // drops everything
  // Every category goes to `sink`, which may call the library: events wait while their thread holds something that such
  // a call would wait for (DeferredEvents).
  explicit Log(Sink sink);
  Log(Sink sink, const std::vector<LogCategory>& categories, bool defers = true);
  // The categories of HSTUJIT_LOG, to standard error.
  static Result<Log> from_environment(const Environment& environment);

  // For callers that would compute a field only to log it.
  bool enabled(LogCategory category) const { return (mask_ & bit(category)) != 0; }

  void event(LogCategory category, std::string_view name, std::initializer_list<LogField> fields = {}) const {
    if (enabled(category)) tell(category, log_line(category, name, fields));
  }

 private:
  void tell(LogCategory category, std::string line) const;

  static unsigned bit(LogCategory category) { return 1u << static_cast<unsigned>(category); }
  std::shared_ptr<const Sink> sink_;
  unsigned mask_ = 0;
  bool defers_ = false;
};

// Defers events of a thread that holds something other threads wait for, and is constructed before it: events of the
// thread go out when its outermost one ends.
class DeferredEvents {
 public:
  DeferredEvents();
  ~DeferredEvents();
  DeferredEvents(const DeferredEvents&) = delete;
  DeferredEvents& operator=(const DeferredEvents&) = delete;
};

}  // namespace hstujit
