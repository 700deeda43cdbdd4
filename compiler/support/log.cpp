#include "compiler/support/log.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <exception>
#include <type_traits>
#include <utility>

#include "compiler/support/text.h"
#include "compiler/support/write_signals.h"

namespace hstujit {
namespace {

constexpr std::array kCategories = {LogCategory::kCompile, LogCategory::kCache, LogCategory::kDispatch,
                                    LogCategory::kTune};

bool needs_quotes(std::string_view text) {
  return text.empty() || text.find_first_of(" ,\"\\") != std::string_view::npos ||
         printable(text, std::string::npos) != text;
}

std::string format_value(const LogField& field) {
  return std::visit(
      [](const auto& value) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string_view>) {
          return needs_quotes(value) ? quote(value, std::string::npos) : std::string(value);
        } else {
          return fmt::format("{}", value);
        }
      },
      field.value);
}

// One call to the C library per line: lines of several threads do not mix. A reader that has gone is no reason for the
// process to end.
void write_to_stderr(LogCategory, const std::string& line) {
  const std::string whole = line + '\n';
  const WriteSignalsBlocked blocked;
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

}  // namespace

std::string_view to_string(LogCategory category) {
  switch (category) {
    case LogCategory::kCompile:
      return "compile";
    case LogCategory::kCache:
      return "cache";
    case LogCategory::kDispatch:
      return "dispatch";
    case LogCategory::kTune:
      return "tune";
  }
  return "";
}

std::string log_line(LogCategory category, std::string_view event, std::initializer_list<LogField> fields) try {
  std::string line = fmt::format("hstujit,{},{}", to_string(category), event);
  for (const LogField& field : fields) line += fmt::format(",{}={}", field.key, format_value(field));
  return line;
} catch (const std::exception&) {
  return {};  // no memory: an event is never a reason to fail
}

namespace {

struct WaitingEvent {
  std::shared_ptr<const Log::Sink> sink;
  LogCategory category;
  std::string line;
};

// State of a thread.
struct Deferral {
  int holders = 0;
  std::vector<WaitingEvent> events;
};
thread_local Deferral deferral;

}  // namespace

DeferredEvents::DeferredEvents() { ++deferral.holders; }

DeferredEvents::~DeferredEvents() {
  if (--deferral.holders > 0) return;
  // A sink may call the library, which defers events of its own.
  for (const WaitingEvent& event : std::exchange(deferral.events, {})) (*event.sink)(event.category, event.line);
}

Log::Log(Sink sink) : Log(std::move(sink), {kCategories.begin(), kCategories.end()}, true) {}

Log::Log(Sink sink, const std::vector<LogCategory>& categories, bool defers) : defers_(defers) {
  if (!sink) return;
  sink_ = std::make_shared<const Sink>([sink = std::move(sink)](LogCategory category, const std::string& line) {
    try {
      sink(category, line);
    } catch (...) {  // whatever the sink throws: the line is lost, and nothing else is
    }
  });
  for (const LogCategory category : categories) mask_ |= bit(category);
}

void Log::tell(LogCategory category, std::string line) const try {
  if (defers_ && deferral.holders > 0) {
    deferral.events.push_back({sink_, category, std::move(line)});
  } else {
    (*sink_)(category, line);
  }
} catch (const std::bad_alloc&) {  // an event is never a reason to fail
}

Result<Log> Log::from_environment(const Environment& environment) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::vector<std::string> names, environment.choices(Env::kLog));
  std::vector<LogCategory> categories;
  for (const LogCategory category : kCategories) {
    for (const std::string& name : names) {
      if (name == to_string(category)) categories.push_back(category);
    }
  }
  return Log(write_to_stderr, categories, false);
}

}  // namespace hstujit
