// The C functions of libhstujit_compiler.so. Nothing throws through them; every call has its own MLIR context, so any
// number of threads may call at once.
#include "compiler/driver/compiler_api.h"

#include <fmt/format.h>

#include <exception>

#include "compiler/driver/request.h"
#include "compiler/emit/launcher.h"
#include "compiler/emit/source.h"
#include "compiler/generator/generator_digest.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/support/json.h"
#include "compiler/support/running_compile.h"

namespace hstujit {

namespace {

class Blobs {
 public:
  Blobs(void* context, hstujit_blob_sink sink) : context_(context), sink_(sink) {}
  void put(const char* name, std::string_view bytes) const { sink_(context_, name, bytes.data(), bytes.size()); }

 private:
  void* context_;
  hstujit_blob_sink sink_;
};

std::string resources_json(const CompileOutput& output) {
  nlohmann::ordered_json json = {{"registers", output.resources.registers},
                                 {"spill_load_bytes", output.resources.spill_load_bytes},
                                 {"spill_store_bytes", output.resources.spill_store_bytes},
                                 {"stack_bytes", output.resources.stack_bytes},
                                 {"static_shared_bytes", output.resources.static_shared_bytes},
                                 {"nvrtc", output.nvrtc_version},
                                 {"compile_ms", output.compile_ms},
                                 {"warnings", output.resources.warnings},
                                 {"rejects", nlohmann::ordered_json::array()}};
  for (const KernelReject& reject : output.rejects)
    json["rejects"].push_back({{"reason", reject.reason}, {"detail", reject.detail}});
  return dump_json(json);
}

// A kernel whose matrix instructions wait for one another works, many times slower than the tuner was promised: it is
// not handed out. A spill is only reported, since a config may be the fastest all the same.
Status check_usable(const CompileOutput& output) {
  for (const KernelReject& reject : output.rejects) {
    if (reject.reason != "spill")
      return Status(Code::kCompileFailed, fmt::format("{}: {}", reject.reason, reject.detail));
  }
  return {};
}

Status compile(const Request& request, const EmittedKernel& kernel, const Blobs& blobs) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::shared_ptr<const Nvrtc> nvrtc, Nvrtc::open(request.nvrtc));
  CompileInput input = compile_input(kernel.source, kernel.plan, request.device.arch);
  input.lineinfo = request.lineinfo;
  std::string log;
  const Result<CompileOutput> output = nvrtc->compile(input, &log);
  blobs.put("log", log);
  if (!output.ok()) return output.status();
  blobs.put("resources", resources_json(*output));
  HSTUJIT_RETURN_IF_ERROR(check_usable(*output));
  blobs.put("cubin", output->cubin);
  return {};
}

Status tell_nvrtc(const Request& request, const Blobs& blobs) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::shared_ptr<const Nvrtc> nvrtc, Nvrtc::open(request.nvrtc));
  blobs.put(
      "nvrtc",
      dump_json({{"path", nvrtc->path()}, {"version", nvrtc->version()}, {"archs", nvrtc->supported_architectures()}}));
  return {};
}

Status run(std::string_view text, const Blobs& blobs) {
  const RunningCompile running;
  HSTUJIT_RETURN_IF_ERROR(running.status());
  HSTUJIT_ASSIGN_OR_RETURN(const Request request, parse_request(text));
  if (request.command == CompilerCommand::kNvrtc) return tell_nvrtc(request, blobs);
  HSTUJIT_ASSIGN_OR_RETURN(const EmittedKernel kernel,
                           emit_kernel(*request.spec, request.direction, request.config, request.device));
  blobs.put("ir", kernel.ir);
  blobs.put("source", kernel.source);
  if (request.command == CompilerCommand::kCompile) return compile(request, kernel, blobs);
  blobs.put("launcher", print_launcher(*request.spec, request.direction, kernel.plan, request.device));
  return {};
}

}  // namespace

}  // namespace hstujit

int hstujit_compiler_abi(void) { return HSTUJIT_COMPILER_ABI; }

// A literal, so NUL-terminated.
const char* hstujit_compiler_generator(void) { return hstujit::generator_digest().data(); }

int hstujit_compiler_run(const char* request_json, void* context, hstujit_blob_sink sink) {
  using namespace hstujit;
  if (request_json == nullptr || sink == nullptr) return static_cast<int>(Code::kInvalidArgument);
  const Blobs blobs(context, sink);
  try {
    const Status status = run(request_json, blobs);
    if (!status.ok()) blobs.put("error", status.message());
    return static_cast<int>(status.code());
  } catch (const std::exception& error) {
    try {
      blobs.put("error", fmt::format("the compiler library failed: {}", error.what()));
    } catch (...) {
      return static_cast<int>(Code::kInternal);
    }
  } catch (...) {
    return static_cast<int>(Code::kInternal);
  }
  return static_cast<int>(Code::kInternal);
}
