// Work on whole configs for C++: hstujit_prewarm, hstujit_tune and the other functions of hstujit_run_options, with
// exceptions instead of statuses and a progress function that may throw.
#ifndef HSTUJIT_OPERATIONS_HPP
#define HSTUJIT_OPERATIONS_HPP

#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "hstujit/error.hpp"
#include "hstujit/hstujit.hpp"

namespace hstujit::api {

// `done` of `total` steps; `what` names the current one. Called on the thread that called the operation. An exception
// ends prewarm and tune early, and reaches the caller of any operation unchanged.
using Progress = std::function<void(std::size_t done, std::size_t total, const std::string& what)>;

// An operation that failed in part. report() is its JSON report (docs/reports.md), "" where there is none.
class OperationError : public Error {
 public:
  OperationError(hstujit_status status, std::string report) : Error(status), report_(std::move(report)) {}
  const std::string& report() const noexcept { return report_; }

 private:
  std::string report_;
};

namespace detail {

// Keeps the exception of a progress function while a C function is on the stack.
class Reporter {
 public:
  explicit Reporter(const Progress& progress) : progress_(progress) {}

  static void call(void* self, std::size_t done, std::size_t total, const char* what) {
    auto* const reporter = static_cast<Reporter*>(self);
    try {
      reporter->progress_(done, total, what);
    } catch (...) {
      reporter->thrown_ = std::current_exception();
      throw Stop();  // hstujit_progress_callback: this ends the operation
    }
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  struct Stop : std::exception {};

  const Progress& progress_;
  std::exception_ptr thrown_;
};

template <typename Operation>
std::string operate(const Operation& operation, const Context& context, const Config& config,
                    hstujit_run_options options, const Progress& progress) {
  Reporter reporter(progress);
  if (progress) {
    options.progress = Reporter::call;
    options.progress_user = &reporter;
  }
  Text report;
  const hstujit_status status = operation(context.get(), config.get(), &options, report.out());
  reporter.rethrow();
  if (status != HSTUJIT_OK) throw OperationError(status, report.str());
  return report.str();
}

}  // namespace detail

// Each takes the options of the C function of its name, where `progress` wins over options.progress, and returns the
// JSON report. OperationError: the status, the sentence, and the report of what was done all the same.
#define HSTUJIT_OPERATION(name)                                                                   \
  inline std::string name(const Context& context, const Config& config,                           \
                          const hstujit_run_options& options = HSTUJIT_INIT(hstujit_run_options), \
                          const Progress& progress = nullptr) {                                   \
    return detail::operate(hstujit_##name, context, config, options, progress);                   \
  }
HSTUJIT_OPERATION(prewarm)
HSTUJIT_OPERATION(tune)
HSTUJIT_OPERATION(run)
HSTUJIT_OPERATION(bench)
HSTUJIT_OPERATION(emit)
HSTUJIT_OPERATION(freeze)
HSTUJIT_OPERATION(explain)
#undef HSTUJIT_OPERATION

}  // namespace hstujit::api

#endif
