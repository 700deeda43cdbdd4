#include "runtime/dispatch/wanted_kernel.h"

#include <thread>

#include "compiler/support/threads.h"
#include "runtime/engine/miss_record.h"
#include "runtime/tuning/tuner/tune_key.h"

namespace hstujit {

Result<SuppliedKernel> obtain_kernel(Engine& engine, const WantedKernel& wanted, int ordinal,
                                     const std::function<void()>& on_miss) {
  const OpSpecPtr& spec = wanted.instance.spec;
  const auto choose = [&] {
    return choose_kernel(engine, *spec, wanted.direction, wanted.device, wanted.bucket, wanted.restriction);
  };
  HSTUJIT_ASSIGN_OR_RETURN(KernelChoice choice, choose());
  if (!choice.tuned && engine.on_miss() == MissPolicy::kTune) {
    HSTUJIT_RETURN_IF_ERROR(tune_on_miss(engine, wanted.instance, wanted.direction, ordinal, wanted.device,
                                         wanted.bucket, wanted.restriction));
    HSTUJIT_ASSIGN_OR_RETURN(choice, choose());
  }
  const CompileRequest request{spec, wanted.direction, choice.config, wanted.device, engine.lineinfo()};
  const bool hit = engine.kernels().find(request) != nullptr;
  if (!choice.tuned || !hit) {
    engine.log().event(LogCategory::kDispatch, hit ? "untuned" : "miss",
                       {{"op", spec->op()},
                        {"direction", to_string(wanted.direction)},
                        {"bucket", to_string(wanted.bucket)},
                        {"config", describe(choice.config)},
                        {"policy", to_string(engine.on_miss())}});
    engine.record_miss({tuning_key(*spec, wanted.direction, wanted.device, wanted.bucket, wanted.restriction),
                        tuning_length(spec->signature(wanted.direction), wanted.instance, wanted.bucket.rows),
                        wanted.length_mode, choice.tuned ? MissReason::kUncompiled : MissReason::kUntuned});
  }
  if (!hit && on_miss) on_miss();
  return supply_kernel(engine, spec, wanted.direction, wanted.device, wanted.bucket, wanted.restriction,
                       std::move(choice), Supply::kMake);
}

void CompilesAhead::start(const EnginePtr& engine, const WantedKernel& wanted, int ordinal) {
  const bool side_by_side = std::thread::hardware_concurrency() > 1 && engine->kernels().compile_jobs() > 1;
  if (!side_by_side || engine->on_miss() != MissPolicy::kHeuristic) return;
  for (const Direction direction : wanted.instance.directions) {
    if (direction == wanted.direction || !wanted.instance.spec->supports(direction)) continue;
    WantedKernel other = wanted;
    other.direction = direction;
    other.bucket.small_batch = false;
    const std::lock_guard lock(mutex_);
    // Without a thread nothing happens: whoever wants the kernel compiles it.
    under_way_.push_back(start_async([engine, other = std::move(other), ordinal] {
      [[maybe_unused]] const auto told_to_whoever_asks = obtain_kernel(*engine, other, ordinal);
    }));
  }
}

}  // namespace hstujit
