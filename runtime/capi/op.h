// Options of an op, from C.
#pragma once

#include <vector>

#include "runtime/capi/boundary.h"

namespace hstujit::capi {

// Enumerations of a caller may hold any number.
Result<Direction> read_direction(const hstujit_direction& given);
Result<Backend> read_backend(const hstujit_backend& given);
Result<Restriction> read_restriction(const Engine& engine, int deterministic);

hstujit_kind kind_of(const Argument& argument);

// One instance, {"op": "silu", "width": 64}. `listed` gets its lengths, where it has some.
Result<Instance> read_instance(Json json, std::vector<int64_t>* listed);

}  // namespace hstujit::capi
