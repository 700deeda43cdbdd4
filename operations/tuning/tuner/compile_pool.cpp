#include "operations/tuning/tuner/compile_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <numeric>

#include "compiler/support/code_text.h"
#include "compiler/support/files.h"
#include "compiler/support/hash.h"
#include "compiler/support/memory.h"
#include "compiler/support/threads.h"
#include "operations/tuning/worker/worker_program.h"

namespace hstujit {

namespace {

// None when this process compiles: as it was asked to, for want of the program, or because no other one can.
std::optional<CompileWorkerSetup> worker_setup(Engine& engine, const TunerOptions& options) {
  const auto program = worker_program(engine.environment());
  const Result<KernelCompilerPtr> compiler = engine.compiler();
  if (!program || !is_program(*program) || !compiler.ok()) return std::nullopt;
  const std::optional<CompilerRecipe> recipe = (*compiler)->recipe();
  if (!recipe) return std::nullopt;
  return CompileWorkerSetup{
      *program, *recipe,
      std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(options.compile_limit_s)),
      options.cancellation};
}

}  // namespace

CompilePool::CompilePool(Engine& engine, const TuneProblem& problem, const std::vector<Candidate>& candidates,
                         size_t first, const TuningRecord* earlier, const TunerOptions& options,
                         std::chrono::steady_clock::time_point deadline)
    : engine_(engine),
      problem_(problem),
      candidates_(candidates),
      earlier_(earlier),
      deadline_(deadline),
      cancellation_(options.cancellation) {
  if (const Result<KernelCompilerPtr> compiler = engine.compiler(); compiler.ok()) {
    if (const Result<NvrtcLibrary> nvrtc = (*compiler)->nvrtc(); nvrtc.ok()) nvrtc_ = nvrtc->version;
  }
  order_.resize(candidates.size() - first);
  results_.reserve(order_.size());  // an exception would end a thread, and the process with it
  std::iota(order_.begin(), order_.end(), first);
  if (first == 0) pinned_ = 1;
  if (first == 0 && earlier != nullptr && !earlier->winner.empty()) {
    const auto winner = std::find_if(order_.begin() + 1, order_.end(), [&](size_t index) {
      return key_text(candidates[index].config) == earlier->winner;
    });
    if (winner != order_.end()) {
      std::rotate(order_.begin() + 1, winner, winner + 1);
      pinned_ = 2;
    }
  }
  // One less than the process may have: a cold key that is asked for meanwhile need not wait for candidates.
  const int max = std::max(1, engine.kernels().compile_jobs() - 1);
  running_ = std::min(options.jobs > 0 ? std::min(options.jobs, max) : max, static_cast<int>(order_.size()));
  const int count = running_;
  const std::optional<CompileWorkerSetup> setup = worker_setup(engine, options);
  for (int i = 0; i <= count; ++i) workers_.push_back(setup ? std::make_unique<CompileWorker>(*setup) : nullptr);
  engine.log().event(LogCategory::kTune, "compile",
                     {{"jobs", count}, {"worker", setup ? setup->program : "none: this process compiles"}});
  const auto on_thread = [this](size_t i) { work(workers_[i]); };
  threads_ = start_threads(static_cast<size_t>(count), on_thread);
  if (threads_.empty() && count > 0) on_thread(0);
  const std::lock_guard lock(mutex_);
  running_ -= count - std::max(static_cast<int>(threads_.size()), std::min(count, 1));
}

CompilePool::~CompilePool() { stop_ = true; }

void CompilePool::work(const Worker& worker) {
  while (!stop_ && !cancellation_.requested()) {
    const size_t position = next_++;
    const bool in_time = std::chrono::steady_clock::now() < deadline_;
    if (position >= order_.size() || (position >= pinned_ && !in_time)) break;
    const Effort in_turn = in_time ? Effort::kCompileUnknown : Effort::kLook;
    PoolResult result = produce(order_[position], order_[position] == 0 ? Effort::kCompile : in_turn, worker);
    const std::lock_guard lock(mutex_);
    results_.push_back(std::move(result));
    ready_.notify_one();
  }
  const std::lock_guard lock(mutex_);
  --running_;
  ready_.notify_one();
}

Result<Blobs> CompilePool::emit(const CompileRequest& request, const Worker& worker) const {
  if (worker) return worker->emit(request);
  HSTUJIT_ASSIGN_OR_RETURN(const KernelCompilerPtr compiler, engine_.compiler());
  return compiler->emit(request);
}

PoolResult CompilePool::produce(size_t index, Effort effort, const Worker& worker) const {
  PoolResult result;
  result.index = index;
  if (cancellation_.requested()) {
    result.binary = cancellation_.status("tuning");
    return result;
  }
  try {
    const CompileRequest request{problem_.spec, problem_.direction, candidates_[index].config, problem_.device,
                                 engine_.lineinfo()};
    Result<Blobs> emitted = emit(request, worker);
    if (!emitted.ok()) {
      result.binary = emitted.status();
      if (worker) result.reason = worker->reason();
      return result;
    }
    result.source_digest = sha256_hex(fmt::format("NVRTC {}\n{}", nvrtc_, without_comments((*emitted)["source"])));
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
    // Only winners are sent to a remote cache: it is not asked for each of the many candidates.
    if (const KernelBinaryPtr cached = engine_.kernels().find(request, Reach::kNear)) {
      result.binary = *cached;
    } else if (worker) {
      const auto compile = [&](const CompileRequest& wanted) { return worker->compile(wanted); };
      result.binary = engine_.kernels().compile_by(compile, request);
      result.reason = worker->reason();
    } else {
      result.binary = engine_.kernels().compile(request);
    }
  } catch (const std::bad_alloc&) {
    result.binary = out_of_memory();
  } catch (const std::exception& error) {
    result.binary = Status(Code::kInternal, error.what());
  }
  return result;
}

std::optional<PoolResult> CompilePool::next() {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return !results_.empty() || running_ == 0; });
  if (results_.empty()) return std::nullopt;
  // The heuristic's config first, whatever was faster to compile: the others are timed alternately with it.
  auto chosen = std::min_element(results_.begin(), results_.end(),
                                 [](const PoolResult& a, const PoolResult& b) { return a.index < b.index; });
  PoolResult result = std::move(*chosen);
  results_.erase(chosen);
  return result;
}

}  // namespace hstujit
