#include "compiler/plan/packed_sequences.h"

#include <algorithm>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/program.h"

namespace hstujit {

bool packs_sequences(const KernelConfig& config) {
  return config.family() == Family::kAttention && config.attention().pack_sequences;
}

bool is_for_short_sequences(const KernelConfig& config) {
  const bool small_ctas = config.family() == Family::kAttention && config.skeleton.starts_with("attention/sm80") &&
                          config.attention().schedule == "per_sequence";
  return small_ctas || packs_sequences(config);
}

bool can_pack_sequences(const OpSpec& spec, Direction direction, const DeviceSpec& device) {
  if (const Program* const program = spec.program(direction)) {
    return std::ranges::any_of(program->steps, [&](const ProgramStep& step) {
      return can_pack_sequences(*step.spec, step.direction, device);
    });
  }
  if (spec.family() != Family::kAttention) return false;
  return std::ranges::any_of(skeletons(), [&](const Skeleton* skeleton) {
    if (!skeleton->serves(spec, direction)) return false;
    return std::ranges::any_of(skeleton->space(spec), [&](const KernelConfig& config) {
      return packs_sequences(config) && skeleton->reject(spec, config, device).empty();
    });
  });
}

}  // namespace hstujit
