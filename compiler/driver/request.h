// The request of compiler_api.h, parsed.
#pragma once

#include <string>
#include <string_view>

#include "compiler/plan/kernel_config.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/status.h"

namespace hstujit {

enum class CompilerCommand { kCompile, kEmit, kNvrtc };

// kNvrtc has options and nothing else.
struct Request {
  CompilerCommand command = CompilerCommand::kCompile;
  OpSpecPtr spec;
  Direction direction = Direction::kForward;
  KernelConfig config;
  DeviceSpec device;
  bool lineinfo = false;
  std::string nvrtc;  // path of libnvrtc; empty: found in the usual places
};

// kInvalidConfig for malformed JSON or a value that is not allowed.
Result<Request> parse_request(std::string_view json);

}  // namespace hstujit
