// How far a command is: one line that is rewritten on a terminal, a line each elsewhere. Standard error, so that it
// never mixes with a report.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>

namespace hstujit {

// How long a count takes to its end, if it goes on as it did. A count that begins anew, as tune's does with each key,
// is estimated anew.
class TimeLeft {
 public:
  // `seconds` since the object was made. Nothing before the first step and after the last.
  std::optional<double> update(size_t done, size_t total, double seconds);

 private:
  size_t done_ = 0;
  size_t total_ = 0;
  double begin_ = 0;   // of this count
  double latest_ = 0;  // update
};

// "40 s" "12 min" "1 h 20 min": no more digits than an estimate has.
std::string time_left_text(double seconds);

class Progress {
 public:
  // Whose steps are reported: those of one count, whose end can be foreseen, or of several that go on side by side.
  enum class Counts { kOne, kSeveral };

  // `label` stands in front: "prewarm".
  explicit Progress(std::string label, Counts counts = Counts::kOne);
  Progress(std::string label, Counts counts, std::FILE* stream, bool terminal, int width);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // From any thread.
  void update(size_t done, size_t total, const std::string& what);
  // Removes the bar. Called by the destructor, and before anything else is written to the terminal.
  void finish();

  // A hstujit_progress_callback; `user` is the Progress.
  static void callback(void* user, size_t done, size_t total, const char* what);

 private:
  std::mutex mutex_;
  std::string label_;
  Counts counts_;
  std::FILE* stream_;
  bool terminal_;
  int width_;
  bool shown_ = false;
  TimeLeft time_left_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The bar without the carriage return, at most `width` columns: "prewarm [===       ] 3/12, 40 s left: ml-100k-d64".
std::string progress_line(const std::string& label, size_t done, size_t total, std::optional<double> seconds_left,
                          const std::string& what, int width);

}  // namespace hstujit
