// Settings that the environment and a config both have.
#pragma once

#include "compiler/plan/search_space.h"
#include "compiler/spec/config.h"
#include "runtime/engine/engine.h"

namespace hstujit {

// HSTUJIT_LENGTH_MODE where it is set, else the config's.
LengthMode length_mode_of(const Engine& engine, const Config& config);

// Restriction that the config or HSTUJIT_DETERMINISTIC asks for.
Restriction restriction_of(const Engine& engine, const Config& config);

}  // namespace hstujit
