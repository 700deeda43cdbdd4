#include "tests/emulation/emulated_kernel.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/emulation/cuda_emulation.h"

namespace hstujit {

namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The source without the files of templates/common/, which cuda_emulation.h includes, behind that header.
std::string host_source(const EmittedKernel& kernel) {
  std::istringstream lines(kernel.source);
  std::string text = "#include \"tests/emulation/cuda_emulation.h\"\n";
  bool common = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("// ---- ")) common = line.starts_with("// ---- common/");
    if (!common) text += line + "\n";
  }
  return text + fmt::format(
                    "extern \"C\" __attribute__((visibility(\"default\"))) void emulated_entry(const void* params) {{\n"
                    "  {}(*static_cast<const Params*>(params));\n}}\n",
                    kernel.plan.kernel_name);
}

int64_t ceil_of(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

int64_t blocks_of(const LaunchPlan& plan, const std::vector<HstujitHostValue>& values) {
  using Source = GridFactor::Source;
  int64_t blocks = 1;
  for (const GridFactor& factor : plan.grid) {
    const HstujitHostValue& value = values[static_cast<size_t>(factor.argument)];
    const int64_t source = factor.source == Source::kConstant ? factor.constant
                           : factor.source == Source::kScalar ? value.integer
                                                              : value.shape[factor.dimension];
    blocks *= ceil_of(source + factor.bias, factor.divisor);
  }
  return blocks;
}

template <class T>
void put(std::vector<unsigned char>& params, uint32_t offset, T value) {
  std::memcpy(params.data() + offset, &value, sizeof(T));
}

}  // namespace

EmulatedKernel::EmulatedKernel(const EmittedKernel& kernel) : plan_(kernel.plan) {
  std::string folder = (fs::temp_directory_path() / "hstujit_emulation_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder " + folder);
  const fs::path source = fs::path(folder) / "kernel.cpp", library = fs::path(folder) / "kernel.so",
                 log = fs::path(folder) / "log";
  std::ofstream(source) << host_source(kernel);
  const std::string command =
      fmt::format("{} -std=c++20 -O1 -w -shared -fPIC -fvisibility=hidden -I{} -I{}/templates {} -o {} > {} 2>&1",
                  HSTUJIT_CXX, HSTUJIT_SOURCE_DIR, HSTUJIT_SOURCE_DIR, source.string(), library.string(), log.string());
  const int code = std::system(command.c_str());
  if (code == 0) library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string words = code != 0 ? read_text(log) : library_ == nullptr ? dlerror() : "";
  fs::remove_all(folder);
  if (library_ == nullptr) throw std::runtime_error(plan_.kernel_name + ": " + words);
  entry_ = reinterpret_cast<void (*)(const void*)>(dlsym(library_, "emulated_entry"));
}

EmulatedKernel::~EmulatedKernel() { dlclose(library_); }

void EmulatedKernel::launch(const std::vector<HstujitHostValue>& values, unsigned seed) const {
  using Kind = ParamSlot::Kind;
  const std::vector<uint32_t> offsets = slot_offsets(plan_.slots);
  std::vector<unsigned char> params(offsets.back());
  for (size_t i = 0; i < plan_.slots.size(); ++i) {
    const ParamSlot& slot = plan_.slots[i];
    const HstujitHostValue& value = values[static_cast<size_t>(slot.argument)];
    switch (slot.kind) {
      case Kind::kPointer:
        put(params, offsets[i], value.data);
        break;
      case Kind::kStride:
        put(params, offsets[i], value.strides[slot.dimension]);
        break;
      case Kind::kSize:
        put(params, offsets[i], value.shape[slot.dimension] + slot.bias);
        break;
      case Kind::kFloat:
        put(params, offsets[i], static_cast<float>(value.real));
        break;
      case Kind::kInt:
        put(params, offsets[i], static_cast<int32_t>(value.integer));
        break;
      case Kind::kInverse: {
        const int64_t fallback = values[static_cast<size_t>(slot.fallback)].integer;
        put(params, offsets[i], 1 / static_cast<float>(value.integer > 0 ? value.integer : fallback));
        break;
      }
      case Kind::kTensorMap:
        throw std::runtime_error("tensor maps are not emulated");
    }
  }
  emulation::launch(static_cast<unsigned>(blocks_of(plan_, values)), static_cast<unsigned>(plan_.threads),
                    static_cast<size_t>(plan_.shared_memory), seed, [&] { entry_(params.data()); });
}

}  // namespace hstujit
