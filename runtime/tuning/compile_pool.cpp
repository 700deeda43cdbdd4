#include "runtime/tuning/compile_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/support/hash.h"
#include "compiler/support/parallel.h"

namespace hstujit {

CompilePool::CompilePool(Engine& engine, const TuneProblem& problem, const std::vector<Candidate>& candidates,
                         const TuningRecord* earlier, int jobs, std::chrono::steady_clock::time_point deadline)
    : engine_(engine), problem_(problem), candidates_(candidates), earlier_(earlier), deadline_(deadline) {
  if (const Result<KernelCompilerPtr> compiler = engine.compiler(); compiler.ok()) {
    if (const Result<NvrtcLibrary> nvrtc = (*compiler)->nvrtc(); nvrtc.ok()) nvrtc_ = nvrtc->version;
  }
  order_.resize(candidates.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  if (earlier != nullptr && !earlier->winner.empty()) {
    const auto winner = std::find_if(order_.begin() + 1, order_.end(), [&](size_t index) {
      return same_config(key_text(candidates[index].config), earlier->winner);
    });
    if (winner != order_.end()) {
      std::rotate(order_.begin() + 1, winner, winner + 1);
      pinned_ = 2;
    }
  }
  running_ = std::min(jobs > 0 ? jobs : available_threads(), static_cast<int>(candidates.size()));
  for (int i = 0, count = running_; i < count; ++i) threads_.emplace_back([this] { work(); });
}

CompilePool::~CompilePool() { stop_ = true; }

void CompilePool::work() {
  while (!stop_) {
    const size_t position = next_++;
    const bool in_time = std::chrono::steady_clock::now() < deadline_;
    if (position >= order_.size() || (position >= pinned_ && !in_time)) break;
    const Effort in_turn = in_time ? Effort::kCompileUnknown : Effort::kLook;
    PoolResult result = produce(order_[position], position == 0 ? Effort::kCompile : in_turn);
    const std::lock_guard lock(mutex_);
    results_.push_back(std::move(result));
    ready_.notify_one();
  }
  const std::lock_guard lock(mutex_);
  --running_;
  ready_.notify_one();
}

PoolResult CompilePool::produce(size_t index, Effort effort) const {
  PoolResult result;
  result.index = index;
  try {
    const CompileRequest request{problem_.spec, problem_.direction, candidates_[index].config, problem_.device,
                                 engine_.lineinfo()};
    const Result<KernelCompilerPtr> compiler = engine_.compiler();
    if (!compiler.ok()) {
      result.binary = compiler.status();
      return result;
    }
    Result<Blobs> emitted = (*compiler)->emit(request);
    if (!emitted.ok()) {
      result.binary = emitted.status();
      return result;
    }
    result.source_digest = sha256_hex(fmt::format("NVRTC {}\n{}", nvrtc_, (*emitted)["source"]));
    const std::string config = key_text(request.config);
    if (earlier_ != nullptr) {
      result.rejection = earlier_->valid_rejection(config, result.source_digest);
      if (result.rejection != nullptr) {
        result.known = PoolResult::Known::kRejected;
      } else if (earlier_->valid_timing(config, result.source_digest, problem_.workload) != nullptr) {
        result.known = PoolResult::Known::kTimed;
      }
    }
    if (result.known != PoolResult::Known::kNothing && effort != Effort::kCompile) return result;
    if (effort == Effort::kLook) {
      result.known = PoolResult::Known::kNotReached;
      return result;
    }
    if (const KernelBinaryPtr cached = engine_.kernels().find(request)) {
      result.binary = *cached;
    } else {
      result.binary = engine_.kernels().compile(request);
    }
  } catch (const std::exception& error) {
    result.binary = Status(Code::kInternal, error.what());
  }
  return result;
}

std::optional<PoolResult> CompilePool::next() {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return !results_.empty() || running_ == 0; });
  if (results_.empty()) return std::nullopt;
  // The heuristic's config first, whatever was faster to compile: the others are timed in turns with it.
  auto chosen = std::min_element(results_.begin(), results_.end(),
                                 [](const PoolResult& a, const PoolResult& b) { return a.index < b.index; });
  PoolResult result = std::move(*chosen);
  results_.erase(chosen);
  return result;
}

}  // namespace hstujit
