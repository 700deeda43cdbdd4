#include "runtime/engine/compiler_library.h"

#include <fmt/format.h>

#include <atomic>

#include "compiler/driver/compiler_api.h"
#include "compiler/generator/generator_digest.h"
#include "compiler/support/installed_library.h"
#include "compiler/support/json.h"
#include "compiler/support/memory.h"

namespace hstujit {

namespace {

constexpr char kCompilerFile[] = "libhstujit_compiler.so";

// How far a request goes.
enum class Stage { kSource, kNvrtc, kCompile };

// LLVM and NVRTC end a process whose memory runs out, or hang. What they may need is more than they were seen to take
// of address space, with NVRTC 13.0 and any kernel: 12 MiB for the library, 10 for a source, 110 for NVRTC, 90 for a
// compile and 20 for each further one that is under way.
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kCompilerLibraryBytes = 32 * kMiB;

size_t bytes_for(Stage stage, bool has_nvrtc, size_t others) {
  constexpr size_t kSource = 32 * kMiB, kNvrtc = 128 * kMiB, kCompile = 128 * kMiB, kFurther = 64 * kMiB;
  const size_t nvrtc = stage == Stage::kSource || has_nvrtc ? 0 : kNvrtc;
  return (stage == Stage::kCompile ? kCompile : kSource) + nvrtc + others * kFurther;
}

void collect(void* context, const char* name, const void* data, size_t size) {
  (*static_cast<Blobs*>(context))[name].assign(static_cast<const char*>(data), size);
}

class CompilerLibrary final : public KernelCompiler {
 public:
  CompilerLibrary(DynamicLibrary library, decltype(&hstujit_compiler_run) run, std::string nvrtc)
      : library_(std::move(library)), run_(run), nvrtc_(std::move(nvrtc)) {}

  Result<Blobs> compile(const CompileRequest& request) const override {
    return run("compile", request, Stage::kCompile);
  }
  Result<Blobs> emit(const CompileRequest& request) const override { return run("emit", request, Stage::kSource); }
  Result<NvrtcLibrary> nvrtc() const override {
    HSTUJIT_ASSIGN_OR_RETURN(
        Blobs blobs, run({{"command", "nvrtc"}, {"options", {{"nvrtc", nvrtc_}}}}, "find NVRTC", Stage::kNvrtc));
    const Json json = json_or_null(blobs["nvrtc"]);
    if (!json.is_object()) return Status(Code::kInternal, fmt::format("{} did not say which NVRTC it uses", path()));
    NvrtcLibrary nvrtc{text_member(json, "path"), text_member(json, "version"), {}};
    if (const auto archs = json.find("archs"); archs != json.end() && archs->is_array()) {
      for (const auto& arch : *archs) nvrtc.archs.push_back(arch.is_number_integer() ? arch.get<int>() : 0);
    }
    return nvrtc;
  }
  std::optional<CompilerRecipe> recipe() const override {
    // The file that was found: another process may find another one, since the loader prefers what is loaded already.
    const Result<NvrtcLibrary> found = nvrtc();
    return CompilerRecipe{path(), found.ok() && found->path.starts_with('/') ? found->path : nvrtc_};
  }
  std::string path() const override { return library_.path().empty() ? library_.name() : library_.path(); }

 private:
  // A request to the library that is under way.
  class UnderWay {
   public:
    explicit UnderWay(std::atomic<size_t>& all) : all_(all), others_(all.fetch_add(1)) {}
    ~UnderWay() { --all_; }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

    size_t others() const { return others_; }

   private:
    std::atomic<size_t>& all_;
    size_t others_;
  };

  Result<Blobs> run(const char* command, const CompileRequest& request, Stage stage) const {
    nlohmann::ordered_json json = to_json(request);
    json.erase("lineinfo");
    json["command"] = command;
    json["options"] = {{"lineinfo", request.lineinfo}, {"nvrtc", nvrtc_}};
    return run(json, fmt::format("{} {}", command, request.spec->op()), stage);
  }

  Result<Blobs> run(const nlohmann::ordered_json& json, const std::string& what, Stage stage) const {
    const UnderWay under_way(under_way_);
    HSTUJIT_RETURN_IF_ERROR(check_memory_left(bytes_for(stage, has_nvrtc_, under_way.others()), "the compiler"));
    Blobs blobs;
    // A path that is no UTF-8 is then not found, and named.
    const std::string request = dump_json(json);
    const Code code = code_from(run_(request.c_str(), &blobs, collect));
    if (code == Code::kOk) {
      if (stage != Stage::kSource) has_nvrtc_ = true;
      return blobs;
    }
    const auto error = blobs.find("error");
    return Status(code, error == blobs.end() || error->second.empty()
                            ? fmt::format("{} failed to {} and gave no reason", path(), what)
                            : error->second);
  }

  DynamicLibrary library_;
  decltype(&hstujit_compiler_run) run_;
  std::string nvrtc_;
  mutable std::atomic<size_t> under_way_{0};
  mutable std::atomic<bool> has_nvrtc_{false};
};

}  // namespace

nlohmann::ordered_json to_json(const CompileRequest& request) {
  return {{"spec", request.spec->to_json()},
          {"direction", to_string(request.direction)},
          {"config", to_json(request.config)},
          {"device", to_json(request.device)},
          {"lineinfo", request.lineinfo}};
}

Result<KernelCompilerPtr> open_compiler_library(const Environment& environment) {
  HSTUJIT_RETURN_IF_ERROR(check_memory_left(kCompilerLibraryBytes, "the compiler library"));
  // LLVM keeps thread-local state and exit handlers: unloading it is not safe.
  HSTUJIT_ASSIGN_OR_RETURN(DynamicLibrary library, open_installed_library("the compiler library", environment,
                                                                          Env::kCompilerLibrary, kCompilerFile));
  HSTUJIT_ASSIGN_OR_RETURN(auto* abi, library.function<decltype(hstujit_compiler_abi)>("hstujit_compiler_abi"));
  HSTUJIT_RETURN_IF_ERROR(check_abi("the compiler library", library, abi(), HSTUJIT_COMPILER_ABI));
  HSTUJIT_ASSIGN_OR_RETURN(auto* generator,
                           library.function<decltype(hstujit_compiler_generator)>("hstujit_compiler_generator"));
  HSTUJIT_RETURN_IF_ERROR(check_generator(fmt::format("the compiler library {}", library.name()), generator()));
  HSTUJIT_ASSIGN_OR_RETURN(auto* run, library.function<decltype(hstujit_compiler_run)>("hstujit_compiler_run"));
  return KernelCompilerPtr(std::make_shared<CompilerLibrary>(std::move(library), run, environment.text(Env::kNvrtc)));
}

}  // namespace hstujit
