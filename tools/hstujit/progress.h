// How far a command is: one line that is rewritten on a terminal, a line each elsewhere. Standard error, so that it
// never mixes with a report.
#pragma once

#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>

namespace hstujit {

class Progress {
 public:
  // `label` stands in front: "prewarm".
  explicit Progress(std::string label);
  Progress(std::string label, std::FILE* stream, bool terminal, int width);
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
  std::FILE* stream_;
  bool terminal_;
  int width_;
  bool shown_ = false;
};

// The bar without the carriage return, at most `width` columns: "prewarm [====>     ]  3/12 ml-100k-d64".
std::string progress_line(const std::string& label, size_t done, size_t total, const std::string& what, int width);

}  // namespace hstujit
