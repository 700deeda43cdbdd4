#include "tools/hstujit/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "tools/hstujit/output.h"
#include "tools/hstujit/table.h"
#include "tools/hstujit/terminal.h"

namespace hstujit {

namespace {

constexpr size_t kBarWidth = 24;

}  // namespace

std::optional<double> TimeLeft::update(size_t done, size_t total, double seconds) {
  if (total != total_ || done < done_) begin_ = latest_;
  done_ = done;
  total_ = total;
  latest_ = seconds;
  if (done == 0 || done >= total) return std::nullopt;
  return (seconds - begin_) * static_cast<double>(total - done) / static_cast<double>(done);
}

std::string time_left_text(double seconds) {
  constexpr double kMinute = 60;
  constexpr int kMinutesOfAnHour = 60;
  constexpr double kMax = 1e6;  // seconds: what is beyond is no estimate
  if (!(seconds < kMax)) return "days";
  if (seconds < 1.5 * kMinute) return fmt::format("{} s", std::max(std::lround(seconds), 1L));
  const long minutes = std::lround(seconds / kMinute);
  if (minutes < kMinutesOfAnHour) return fmt::format("{} min", minutes);
  return fmt::format("{} h {} min", minutes / kMinutesOfAnHour, minutes % kMinutesOfAnHour);
}

std::string progress_line(const std::string& label, size_t done, size_t total, std::optional<double> seconds_left,
                          const std::string& what, int width) {
  const size_t filled = total == 0 ? kBarWidth : std::min(done, total) * kBarWidth / total;
  std::string count = fmt::format("{}/{}", done, total);
  if (seconds_left) count += fmt::format(", {} left:", time_left_text(*seconds_left));
  const std::string line = fmt::format("{} [{}{}] {} {}", label, std::string(filled, '='),
                                       std::string(kBarWidth - filled, ' '), count, one_line(what));
  return cut(line, static_cast<size_t>(std::max(width, 1)));
}

Progress::Progress(std::string label, Counts counts)
    : Progress(std::move(label), counts, stderr, is_terminal(STDERR_FILENO), terminal_width(STDERR_FILENO)) {}

Progress::Progress(std::string label, Counts counts, std::FILE* stream, bool terminal, int width)
    : label_(std::move(label)), counts_(counts), stream_(stream), terminal_(terminal), width_(width) {}

void Progress::update(size_t done, size_t total, const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (terminal_) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    std::optional<double> left = time_left_.update(done, total, seconds);
    if (counts_ == Counts::kSeveral) left.reset();
    write_text(stream_, "\r\033[K" + progress_line(label_, done, total, left, what, width_ - 1));
    std::fflush(stream_);
    shown_ = true;
  } else {
    write_text(stream_, format_printable("{} {}/{} {}\n", label_, done, total, what));
    std::fflush(stream_);
  }
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (shown_) {
    write_text(stream_, "\r\033[K");
    std::fflush(stream_);
  }
  shown_ = false;
}

void Progress::callback(void* user, size_t done, size_t total, const char* what) {
  static_cast<Progress*>(user)->update(done, total, what == nullptr ? "" : what);
}

}  // namespace hstujit
