#include "compiler/nvrtc/kept_interrupt.h"

#include <csignal>
#include <mutex>

namespace hstujit {
namespace {

struct Compiles {
  std::mutex mutex;
  int count = 0;                 // under way
  struct sigaction before = {};  // the first of them
};

Compiles& compiles() {
  static auto* const compiles = new Compiles;  // threads may compile while the process ends
  return *compiles;
}

}  // namespace

KeptInterrupt::KeptInterrupt() {
  const std::scoped_lock lock(compiles().mutex);
  if (compiles().count++ == 0) sigaction(SIGINT, nullptr, &compiles().before);
}

KeptInterrupt::~KeptInterrupt() {
  const std::scoped_lock lock(compiles().mutex);
  --compiles().count;
  const struct sigaction& before = compiles().before;
  struct sigaction now = {};
  if (sigaction(SIGINT, nullptr, &now) != 0 || now.sa_flags == before.sa_flags) return;
  const bool same = (before.sa_flags & SA_SIGINFO) != 0 ? now.sa_sigaction == before.sa_sigaction
                                                        : now.sa_handler == before.sa_handler;
  if (same) sigaction(SIGINT, &before, nullptr);
}

}  // namespace hstujit
