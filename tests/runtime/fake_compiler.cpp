// A compiler library that a test dresses up: it says the generator that it is told to, and compiles nothing.
#include <string>

#include "compiler/driver/compiler_api.h"

namespace {

std::string& generator() {
  static std::string digest;
  return digest;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void fake_compiler_generator(const char* digest) {
  generator() = digest;
}

int hstujit_compiler_abi(void) { return HSTUJIT_COMPILER_ABI; }

const char* hstujit_compiler_generator(void) { return generator().c_str(); }

int hstujit_compiler_run(const char*, void* context, hstujit_blob_sink sink) {
  const std::string sentence = "the fake compiler compiles nothing";
  sink(context, "error", sentence.data(), sentence.size());
  return 8;  // Code::kCompileFailed
}
