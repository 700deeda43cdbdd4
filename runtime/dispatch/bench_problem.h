// The problem whose candidates a bench times, as another process or library is told of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "compiler/spec/device_spec.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

// The arguments of DeviceBench::create, and where the driver is.
struct BenchProblem {
  std::string cuda_driver;  // as for CudaDriver::open
  OpSpecPtr spec;
  Direction direction = Direction::kForward;
  DeviceSpec device;
  int ordinal = 0;
  Lengths lengths;
  double alpha = 0;
};

nlohmann::ordered_json to_json(const BenchProblem& problem);
// kInvalidArgument or kInvalidConfig with what is wrong.
Result<BenchProblem> parse_bench_problem(const nlohmann::ordered_json& json);

}  // namespace hstujit
