// An NVRTC that puts faults into chosen kernels, for tests: HSTUJIT_NVRTC names this library.
//
//     FAULTY_NVRTC_REAL   path of the NVRTC that compiles
//     FAULTY_NVRTC_PLAN   file of lines "FAULT CONFIG": the fault goes into the kernels that are generated from the
//     config,
//                         canonical JSON as the source's comment has it
//
// The real one's functions are found by name, so this library passes through whatever it does not change.
#include <dlfcn.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

namespace {

using Program = void*;

// Bodies that replace the kernel's.
const std::map<std::string, std::string> kBodies = {
    {"illegal_access", "*reinterpret_cast<volatile int*>(16) = 1;"},
    {"infinite_loop", "for (;;) asm volatile(\"nanosleep.u32 1000;\");"},
    {"no_result", ""},
    {"shared_memory",
     "__shared__ volatile char much[300 * 1024]; much[threadIdx.x] = 1; kernel_main<Spec, Config>(params);"},
};
constexpr const char* kBody = "kernel_main<Spec, Config>(params);";
constexpr const char* kConfig = "//   config    ";

void* real() {
  static void* const library = [] {
    const char* path = std::getenv("FAULTY_NVRTC_REAL");
    const std::string text = path != nullptr ? path : "";
    void* const opened = dlopen(text.c_str(), RTLD_NOW);
    if (opened == nullptr) std::abort();
    return opened;
  }();
  return library;
}

template <typename Function>
Function* real(const char* name) {
  void* const function = dlsym(real(), name);
  if (function == nullptr) std::abort();
  return reinterpret_cast<Function*>(function);
}

std::string with_faults(std::string source) {
  std::ifstream plan(std::getenv("FAULTY_NVRTC_PLAN"));
  for (std::string fault, config; plan >> fault && std::getline(plan >> std::ws, config);) {
    if (source.find(kConfig + config + "\n") == std::string::npos) continue;
    if (fault == "killed_compile") std::raise(SIGKILL);
    const size_t body = source.rfind(kBody);
    if (body == std::string::npos) std::abort();
    source.replace(body, std::string(kBody).size(), kBodies.at(fault));
  }
  return source;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { return real<int(int*, int*)>("nvrtcVersion")(major, minor); }
int nvrtcGetNumSupportedArchs(int* count) { return real<int(int*)>("nvrtcGetNumSupportedArchs")(count); }
int nvrtcGetSupportedArchs(int* archs) { return real<int(int*)>("nvrtcGetSupportedArchs")(archs); }
int nvrtcCreateProgram(Program* program, const char* source, const char* name, int count, const char* const* headers,
                       const char* const* names) {
  return real<decltype(nvrtcCreateProgram)>("nvrtcCreateProgram")(program, with_faults(source).c_str(), name, count,
                                                                  headers, names);
}
int nvrtcCompileProgram(Program program, int count, const char* const* options) {
  return real<decltype(nvrtcCompileProgram)>("nvrtcCompileProgram")(program, count, options);
}
int nvrtcDestroyProgram(Program* program) { return real<int(Program*)>("nvrtcDestroyProgram")(program); }
int nvrtcGetProgramLogSize(Program program, size_t* size) {
  return real<int(Program, size_t*)>("nvrtcGetProgramLogSize")(program, size);
}
int nvrtcGetProgramLog(Program program, char* log) {
  return real<int(Program, char*)>("nvrtcGetProgramLog")(program, log);
}
int nvrtcGetCUBINSize(Program program, size_t* size) {
  return real<int(Program, size_t*)>("nvrtcGetCUBINSize")(program, size);
}
int nvrtcGetCUBIN(Program program, char* cubin) { return real<int(Program, char*)>("nvrtcGetCUBIN")(program, cubin); }
const char* nvrtcGetErrorString(int result) { return real<const char*(int)>("nvrtcGetErrorString")(result); }
}
