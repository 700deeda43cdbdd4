// A compiler library that a test dresses up, by variables of the environment, so that it does so in a worker, too:
//
//   FAKE_COMPILER_GENERATOR   the generator that it says
//   FAKE_COMPILER_SCRIPT      JSON object: what it does when it compiles a config (its JSON text; "*": any other):
//                             "fail", "hang", "crash", "exit", "kill", or "slow", which takes 2 s; for that and what is
//                             not listed it makes a "cubin".
//                             Without the variable it compiles nothing.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "compiler/driver/compiler_api.h"
#include "compiler/support/json.h"

namespace {

using Json = nlohmann::ordered_json;

// How the process ends, if it does, and how late the compile is.
void act(const std::string& action) {
  // A sanitizer would report it and exit.
  ::signal(SIGSEGV, SIG_DFL);
  if (action == "crash") ::raise(SIGSEGV);
  if (action == "exit") ::_exit(7);
  if (action == "kill") ::raise(SIGKILL);
  while (action == "hang") ::pause();
  if (action == "slow") ::sleep(2);
}

}  // namespace

int hstujit_compiler_abi(void) { return HSTUJIT_COMPILER_ABI; }

const char* hstujit_compiler_generator(void) {
  const char* const digest = std::getenv("FAKE_COMPILER_GENERATOR");
  return digest != nullptr ? digest : "";
}

int hstujit_compiler_run(const char* text, void* context, hstujit_blob_sink sink) {
  const auto give = [&](const char* name, const std::string& bytes) {
    sink(context, name, bytes.data(), bytes.size());
  };
  const auto fail = [&](const std::string& sentence) {
    give("error", sentence);
    return 8;  // Code::kCompileFailed
  };
  const Json request = Json::parse(text);
  if (request["command"] == "nvrtc") {
    give("nvrtc", R"({"path": "/a/libnvrtc.so.13", "version": "13.0"})");
    return 0;
  }
  const char* const script_text = std::getenv("FAKE_COMPILER_SCRIPT");
  if (script_text == nullptr) return fail("the fake compiler compiles nothing");
  const std::string config = request["config"].dump();
  give("source", config);
  give("ir", "module {}");
  if (request["command"] == "emit") return 0;
  const Json script = Json::parse(script_text);
  const std::string action = script.value(config, script.value("*", ""));
  if (action == "fail") return fail("the fake compiler was told to fail");
  act(action);
  // An ELF header that names no machine, which is left to the driver; then what tells it from others.
  std::string cubin = "\x7f\x45\x4c\x46";
  cubin.resize(64);
  give("cubin", cubin + config + std::string(1 << 16, '\0'));
  give("log", "the log");
  give("resources", R"({"registers": 100, "nvrtc": "13.0"})");
  return 0;
}
