#include "tools/hstujit/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "tools/hstujit/table.h"
#include "tools/hstujit/terminal.h"

namespace hstujit {

namespace {

constexpr size_t kBarWidth = 24;

// At most `width` columns of `text`, ended by an ellipsis when it is cut.
std::string cut(const std::string& text, size_t width) {
  if (display_width(text) <= width) return text;
  if (width == 0) return "";
  std::string shown;
  size_t columns = 0;
  for (const char c : text) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (begins && ++columns == width) break;
    shown += c;
  }
  return shown + "…";
}

}  // namespace

std::string progress_line(const std::string& label, size_t done, size_t total, const std::string& what, int width) {
  const size_t filled = total == 0 ? kBarWidth : std::min(done, total) * kBarWidth / total;
  const std::string count = fmt::format("{}/{}", done, total);
  const std::string line = fmt::format("{} [{}{}] {} {}", label, std::string(filled, '='),
                                       std::string(kBarWidth - filled, ' '), count, what);
  return cut(line, static_cast<size_t>(std::max(width, 1)));
}

Progress::Progress(std::string label)
    : Progress(std::move(label), stderr, is_terminal(STDERR_FILENO), terminal_width(STDERR_FILENO)) {}

Progress::Progress(std::string label, std::FILE* stream, bool terminal, int width)
    : label_(std::move(label)), stream_(stream), terminal_(terminal), width_(width) {}

void Progress::update(size_t done, size_t total, const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (terminal_) {
    fmt::print(stream_, "\r\033[K{}", progress_line(label_, done, total, what, width_ - 1));
    std::fflush(stream_);
    shown_ = true;
  } else {
    fmt::print(stream_, "{} {}/{} {}\n", label_, done, total, what);
    std::fflush(stream_);
  }
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (shown_) {
    fmt::print(stream_, "\r\033[K");
    std::fflush(stream_);
  }
  shown_ = false;
}

void Progress::callback(void* user, size_t done, size_t total, const char* what) {
  static_cast<Progress*>(user)->update(done, total, what == nullptr ? "" : what);
}

}  // namespace hstujit
