// Prints what the compiler library makes of a request: test_emit_program <libhstujit_compiler.so> <request.json> <blob>
// [folder]. With a folder, every blob is also written there, so that a template's author can look at the source and
// compile it.
#include <dlfcn.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "compiler/driver/compiler_api.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s <compiler library> <request file> <blob> [folder]\n", argv[0]);
    return 2;
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  const auto run = reinterpret_cast<decltype(&hstujit_compiler_run)>(dlsym(library, "hstujit_compiler_run"));
  std::stringstream request;
  request << std::ifstream(argv[2]).rdbuf();
  std::map<std::string, std::string> blobs;
  const auto sink = [](void* context, const char* name, const void* data, size_t size) {
    (*static_cast<std::map<std::string, std::string>*>(context))[name].assign(static_cast<const char*>(data), size);
  };
  const int code = run(request.str().c_str(), &blobs, sink);
  if (argc > 4) {
    for (const auto& [name, bytes] : blobs) std::ofstream(std::string(argv[4]) + "/" + name, std::ios::binary) << bytes;
  }
  std::fputs(blobs[argv[3]].c_str(), stdout);
  if (code != 0) std::fprintf(stderr, "%s\n", blobs["error"].c_str());
  return code == 0 ? 0 : 1;
}
