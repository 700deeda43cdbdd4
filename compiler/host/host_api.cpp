// The C boundary: JSON in, codes and sentences out. No exception leaves it.
#include "compiler/host/host_api.h"

#include <fmt/format.h>

#include <string>

#include "compiler/generator/generator_digest.h"
#include "compiler/host/kernel.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/c_boundary.h"
#include "compiler/support/json.h"
#include "compiler/support/running_compile.h"

namespace {

using hstujit::Code;
using hstujit::Direction;
using hstujit::JitKernel;
using hstujit::Json;
using hstujit::Result;
using hstujit::Status;

constexpr const char* kName = "the host backend";
constexpr int64_t kMaxThreads = 1024;

struct Request {
  hstujit::OpSpecPtr spec;
  Direction direction = Direction::kForward;
  int threads = 0;
  std::string objects;
};

Status invalid(std::string message) { return Status(Code::kInvalidConfig, std::move(message)); }

Result<Request> parse_request(const char* text) {
  if (text == nullptr) return invalid("the request is null; it must be JSON text");
  const Json json = hstujit::json_or_null(text, {.depth = hstujit::kMaxReportDepth});
  if (!json.is_object()) return invalid("the request is not a JSON object");
  Request request;
  for (const auto& [key, value] : json.items()) {
    if (key == "spec") {
      HSTUJIT_ASSIGN_OR_RETURN(request.spec, hstujit::parse_op_spec(value, "spec"));
    } else if (key == "direction") {
      const auto direction = value.is_string() ? hstujit::parse_direction(value.get<std::string>()) : std::nullopt;
      if (!direction)
        return invalid(
            fmt::format("direction is {}; allowed are \"forward\" and \"backward\"", hstujit::brief_json(value)));
      request.direction = *direction;
    } else if (key == "threads") {
      if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > kMaxThreads) {
        return invalid(fmt::format("threads is {}; allowed are integers from 0 (all) to {}", hstujit::brief_json(value),
                                   kMaxThreads));
      }
      request.threads = static_cast<int>(value.get<int64_t>());
    } else if (key == "objects") {
      if (!value.is_string())
        return invalid(fmt::format("objects is {}; allowed is the path of a folder", hstujit::brief_json(value)));
      request.objects = value.get<std::string>();
    } else {
      return invalid(fmt::format(
          "the request has an unknown field \"{}\"; allowed are spec, direction, threads and objects", key));
    }
  }
  if (request.spec == nullptr) return invalid("the request has no field \"spec\"");
  return request;
}

Result<JitKernel> create(const char* text) {
  const hstujit::RunningCompile running;
  HSTUJIT_RETURN_IF_ERROR(running.status());
  HSTUJIT_ASSIGN_OR_RETURN(Request request, parse_request(text));
  const hstujit::KeptFiles objects(request.objects, HSTUJIT_HOST_MAX_OBJECTS);
  return JitKernel::create(request.spec, request.direction, request.threads, objects);
}

}  // namespace

extern "C" {

int hstujit_host_abi(void) { return HSTUJIT_HOST_ABI; }

const char* hstujit_host_generator(void) { return hstujit::generator_digest().data(); }  // of a literal

void* hstujit_host_create(const char* request_json, char* error, size_t error_size) {
  JitKernel* kernel = nullptr;
  hstujit::guarded_call(kName, error, error_size, [&]() -> Status {
    HSTUJIT_ASSIGN_OR_RETURN(JitKernel created, create(request_json));
    kernel = new JitKernel(std::move(created));
    return Status();
  });
  return kernel;
}

int hstujit_host_launch(void* kernel, const HstujitHostValue* values, size_t count, char* error, size_t error_size) {
  return hstujit::guarded_call(kName, error, error_size, [&]() -> Status {
    if (kernel == nullptr)
      return Status(Code::kInvalidArgument, "kernel is null; it must come from hstujit_host_create");
    return static_cast<const JitKernel*>(kernel)->launch(values, count);
  });
}

void hstujit_host_destroy(void* kernel) { delete static_cast<JitKernel*>(kernel); }
}
