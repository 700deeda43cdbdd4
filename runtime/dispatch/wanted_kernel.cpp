#include "runtime/dispatch/wanted_kernel.h"

#include <thread>

#include "compiler/support/threads.h"
#include "runtime/dispatch/batch_classes.h"
#include "runtime/dispatch/miss_record.h"
#include "runtime/dispatch/miss_tuner.h"

namespace hstujit {

Result<SuppliedKernel> obtain_kernel(Engine& engine, const WantedKernel& wanted, int ordinal,
                                     const std::function<void()>& on_miss) {
  const OpSpecPtr& spec = wanted.instance.spec;
  const auto choose = [&] {
    return choose_kernel(engine, *spec, wanted.direction, wanted.device, wanted.bucket, wanted.restriction);
  };
  HSTUJIT_ASSIGN_OR_RETURN(KernelChoice choice, choose());
  const bool to_be_tuned = !choice.tuned && is_tuned(wanted.instance, wanted.direction, wanted.bucket, wanted.device);
  if (to_be_tuned && engine.on_miss() == MissPolicy::kTune) {
    HSTUJIT_RETURN_IF_ERROR(tune_on_miss(engine, tuning_request(wanted.instance, wanted.direction, ordinal,
                                                                wanted.device, wanted.bucket, wanted.restriction)));
    HSTUJIT_ASSIGN_OR_RETURN(choice, choose());
  }
  const CompileRequest request{spec, wanted.direction, choice.config, wanted.device, engine.lineinfo()};
  const bool hit = engine.kernels().look_up(request) != nullptr;
  const bool untuned = !choice.tuned && to_be_tuned;
  if (untuned || !hit) {
    engine.log().event(LogCategory::kDispatch, hit ? "untuned" : "miss",
                       {{"op", spec->op()},
                        {"direction", to_string(wanted.direction)},
                        {"bucket", to_string(wanted.bucket)},
                        {"config", describe(choice.config)},
                        {"policy", to_string(engine.on_miss())}});
    if (engine.records_misses()) {
      engine.record_miss(
          format_miss({tuning_key(*spec, wanted.direction, wanted.device, wanted.bucket, wanted.restriction),
                       tuning_length(spec->signature(wanted.direction), wanted.instance, wanted.bucket.rows),
                       wanted.length_mode, untuned ? MissReason::kUntuned : MissReason::kUncompiled}));
    }
  }
  if (!hit && on_miss) on_miss();
  return supply_kernel(engine, spec, wanted.direction, wanted.device, wanted.bucket, wanted.restriction,
                       std::move(choice), Supply::kMake);
}

bool compiles_ahead(Engine& engine) {
  const bool side_by_side = std::thread::hardware_concurrency() > 1 && engine.kernels().compile_jobs() > 1;
  return side_by_side && engine.on_miss() == MissPolicy::kHeuristic;
}

void CompilesAhead::start(const EnginePtr& engine, const WantedKernel& wanted, int ordinal) {
  if (!compiles_ahead(*engine)) return;
  for (const Direction direction : wanted.instance.directions) {
    if (direction == wanted.direction || !wanted.instance.spec->supports(direction)) continue;
    WantedKernel other = wanted;
    other.direction = direction;
    const BatchClasses classes = batch_classes(other.instance, direction, other.bucket.rows, other.device);
    const bool short_too = other.bucket.batch_class == BatchClass::kShortSequences && classes.short_sequences;
    if (!short_too) other.bucket.batch_class = BatchClass::kAny;
    const std::lock_guard lock(mutex_);
    // Without a thread nothing happens: whoever wants the kernel compiles it.
    under_way_.push_back(start_async([engine, other = std::move(other), ordinal] {
      [[maybe_unused]] const auto told_to_whoever_asks = obtain_kernel(*engine, other, ordinal);
    }));
  }
}

}  // namespace hstujit
