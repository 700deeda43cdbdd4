// What a worker process must know to make its bench, and the way to the worker's program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "compiler/spec/device_spec.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/env.h"

namespace hstujit {

// The arguments of DeviceBench::create, and where the driver is.
struct WorkerProblem {
  std::string cuda_driver;  // as for CudaDriver::open
  OpSpecPtr spec;
  Direction direction = Direction::kForward;
  DeviceSpec device;
  int ordinal = 0;
  Lengths lengths;
  double alpha = 0;
};

nlohmann::ordered_json to_json(const WorkerProblem& problem);
// kInvalidArgument or kInvalidConfig with what is wrong.
Result<WorkerProblem> parse_worker_problem(const nlohmann::ordered_json& json);

// HSTUJIT_WORKER, else hstujit-worker of this installation or build tree. None when the variable says "none" or there
// is no such file.
std::optional<std::string> worker_program(const Environment& environment);

}  // namespace hstujit
