#include "runtime/dispatch/config_settings.h"

namespace hstujit {

LengthMode length_mode_of(const Engine& engine, const Config& config) {
  return engine.environment().is_set(Env::kLengthMode) ? engine.length_mode() : config.tuning.length_mode;
}

Restriction restriction_of(const Engine& engine, const Config& config) {
  return {.deterministic = engine.deterministic() || config.tuning.deterministic};
}

}  // namespace hstujit
