#include "operations/tuning/worker/worker_compile.h"

#include <fmt/format.h>

#include <fstream>

#include "compiler/support/json.h"

namespace hstujit {

Result<CompileRequest> parse_compile_request(const Json& json) {
  CompileRequest request;
  try {
    HSTUJIT_ASSIGN_OR_RETURN(request.spec, parse_op_spec(json.at("spec"), "spec"));
    const auto direction = parse_direction(json.at("direction").get<std::string>());
    if (!direction)
      return Status(Code::kInvalidArgument, fmt::format("direction is {}", brief_json(json.at("direction"))));
    request.direction = *direction;
    HSTUJIT_ASSIGN_OR_RETURN(request.config, parse_kernel_config(json.at("config")));
    HSTUJIT_ASSIGN_OR_RETURN(request.device, parse_device_spec(json.at("device")));
    request.lineinfo = json.at("lineinfo").get<bool>();
  } catch (const Json::exception& error) {
    return Status(Code::kInvalidArgument, fmt::format("compile request of a worker: {}", error.what()));
  }
  return request;
}

void put_blobs(const Blobs& blobs, WorkerMessage* message) {
  Json sizes = Json::object();
  for (const auto& [name, bytes] : blobs) {
    sizes[name] = bytes.size();
    message->body += bytes;
  }
  message->head["blobs"] = std::move(sizes);
}

Result<Blobs> take_blobs(const WorkerMessage& message) {
  const Status torn(Code::kInternal, "the worker's answer has other bytes than its list of blobs says");
  Blobs blobs;
  size_t offset = 0;
  const auto sizes = message.head.find("blobs");
  if (sizes == message.head.end() || !sizes->is_object()) return torn;
  for (const auto& [name, size] : sizes->items()) {
    if (!size.is_number_unsigned() || size.get<size_t>() > message.body.size() - offset) return torn;
    blobs[name] = message.body.substr(offset, size.get<size_t>());
    offset += size.get<size_t>();
  }
  if (offset != message.body.size()) return torn;
  return blobs;
}

Result<KernelCompilerPtr> open_compiler_of(const CompilerRecipe& recipe) {
  // Above a server of any size that started the tuning. Where that is not allowed, the kernel chooses as usual.
  std::ofstream("/proc/self/oom_score_adj") << 1000;
  return open_compiler_library(
      Environment::of_values({{"HSTUJIT_COMPILER_LIBRARY", recipe.library}, {"HSTUJIT_NVRTC", recipe.nvrtc}}));
}

}  // namespace hstujit
