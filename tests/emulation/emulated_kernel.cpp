#include "tests/emulation/emulated_kernel.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "compiler/support/files.h"
#include "compiler/support/integers.h"
#include "tests/emulation/cuda_emulation.h"
#include "tests/emulation/tensor_map.h"
#include "tests/paths.h"
#include "tests/support/whole_file.h"

namespace hstujit {

namespace {

namespace fs = std::filesystem;

// In place of the wrapper of one shape of wgmma, whose text begins with `lines[first]`: the same function, which
// describes each step of the product to the emulation. `first` becomes the line behind it.
std::string product_function(const std::vector<std::string>& lines, size_t& first) {
  const std::regex shape("m64n(\\d+)k16\\.f32\\.(bf16|f16)"), offset("add\\.u32 low, %\\d+, (\\d+);"),
      descriptor("mov\\.b64 ([ab]),"), operands("(first|more), 1, 1, (?:([01]), )?([01]);");
  std::string text = lines[first] + "\n", n, type, step_offset;
  std::map<std::string, std::string> offsets;
  bool registers = false, argument = false, adds = false;
  int step = 0;
  for (++first; lines[first] != "};"; ++first) {
    const std::string& line = lines[first];
    std::smatch found;
    if (std::regex_search(line, found, shape) && n.empty()) n = found[1], type = found[2];
    if (line.find("void issue(") != std::string::npos) {
      registers = line.find("const u32 (&a)") != std::string::npos;
      argument = line.find("bool accumulate") != std::string::npos;
      text += "  static " + line.substr(line.find("void issue(")) + "\n";
    }
    if (std::regex_search(line, found, std::regex("setp\\.ne\\.b32 first, (\\S+),"))) adds = found[1] == "1";
    if (std::regex_search(line, found, offset)) step_offset = found[1];
    if (std::regex_search(line, found, descriptor)) offsets[found[1]] = step_offset;
    if (!std::regex_search(line, found, operands)) continue;
    const std::string accumulate = found[1] == "more" ? "true" : argument ? "accumulate" : adds ? "true" : "false";
    const auto address = [&](const char* name) {
      return fmt::format("0x40000040ull << 32 | ({} + {}u)", name, offsets.at(name));
    };
    const int word = 4 * step++;
    text += fmt::format("    emulation::multiply_async({{d, {}, {}, {}, {}, {}, {}, {}, {}, {{{}}}}});\n", n,
                        accumulate, registers, found[2] == "1", found[3] == "1", type == "bf16",
                        registers ? "0" : address("a"), address("b"),
                        registers ? fmt::format("a[{}], a[{}], a[{}], a[{}]", word, word + 1, word + 2, word + 3) : "");
  }
  ++first;
  return text + "  }\n};\n";
}

std::string entry_name(size_t number) { return fmt::format("emulated_entry_{}", number); }

std::string entry_function(size_t number, const std::string& kernel_name) {
  return fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) void {}(const void* params) {{\n"
      "  {}(*static_cast<const Params*>(params));\n}}\n",
      entry_name(number), kernel_name);
}

// The source without the files of templates/common/, which cuda_emulation.h includes, behind that header; but with that
// of sequences, which is another one where each has its own number of contexts.
std::string host_source(const EmittedKernel& kernel) {
  std::istringstream stream(kernel.source);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  const bool hopper = kernel.source.find("mbarrier.init") != std::string::npos;
  std::string text = fmt::format("#include \"tests/emulation/{}_emulation.h\"\n", hopper ? "hopper" : "cuda");
  bool common = true, generated = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    generated = generated || lines[i] == "// ---- generated";
    if (lines[i].starts_with("// ----") && i + 1 < lines.size())
      common = !generated && !lines[i + 1].starts_with("// Jagged tensors:");
    if (common || lines[i].find("extern __shared__ __align__(") != std::string::npos) continue;
    if (lines[i].find("__shared__ __align__(") != std::string::npos) {
      // Its size alone, "[...]": what is written behind it is a failure.
      const size_t size = lines[i].find('[') + 1;
      text += fmt::format("emulation::declare_shared({});\n", lines[i].substr(size, lines[i].rfind(']') - size));
      continue;
    }
    const bool wrapper = lines[i].starts_with("struct ") && i + 1 < lines.size() &&
                         lines[i + 1].find(" x wgmma.mma_async") != std::string::npos;
    if (wrapper) text += product_function(lines, i);
    text += lines[i] + "\n";
  }
  text += entry_function(0, kernel.plan.kernel_name);
  for (size_t i = 0; i < kernel.plan.following.size(); ++i) {
    text += entry_function(i + 1, kernel.plan.following[i].kernel_name);
  }
  return text;
}

int64_t product_of(const std::vector<GridFactor>& factors, const std::vector<HstujitHostValue>& values) {
  using Source = GridFactor::Source;
  int64_t product = 1;
  for (const GridFactor& factor : factors) {
    const HstujitHostValue& value = values[static_cast<size_t>(factor.argument)];
    const int64_t source = factor.source == Source::kConstant ? factor.constant
                           : factor.source == Source::kScalar ? value.integer
                                                              : value.shape[factor.dimension];
    product *= ceil_div(source + factor.bias, factor.divisor);
  }
  return product;
}

// What a launch borrows, between bytes that it must leave as they are.
class GuardedWorkspace {
 public:
  GuardedWorkspace(const WorkspacePlan& plan, const std::vector<HstujitHostValue>& values) {
    for (const WorkspaceRegion& region : plan.regions) {
      starts_.push_back((size_ + kAlignment - 1) / kAlignment * kAlignment);
      size_ = starts_.back() + static_cast<size_t>(product_of(region.bytes, values));
    }
    bytes_.resize(kGuard + size_ + kGuard + kAlignment, kUntouched);
    const size_t misplaced = reinterpret_cast<uintptr_t>(bytes_.data()) % kAlignment;
    first_ = kGuard + (kAlignment - misplaced);
    // Floating point of any width reads it as NaN.
    constexpr unsigned char kPoison = 0xFF;
    for (size_t i = 0; i < starts_.size(); ++i) {
      std::fill(bytes_.begin() + static_cast<ptrdiff_t>(first_ + starts_[i]),
                bytes_.begin() + static_cast<ptrdiff_t>(first_ + size_), plan.regions[i].cleared ? 0 : kPoison);
    }
  }

  void* region(int index) { return bytes_.data() + first_ + starts_[static_cast<size_t>(index)]; }

  // Throws where something was written beside it.
  void check(const std::string& kernel_name) const {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (i == first_) i += size_;
      if (bytes_[i] == kUntouched) continue;
      throw std::runtime_error(fmt::format("{} writes byte {} of a workspace of {} bytes", kernel_name,
                                           static_cast<int64_t>(i) - static_cast<int64_t>(first_), size_));
    }
  }

 private:
  static constexpr size_t kAlignment = 256, kGuard = 4096;
  static constexpr unsigned char kUntouched = 0x3c;  // a small number, so that a sum over it shows
  size_t size_ = 0;
  std::vector<size_t> starts_;  // of regions
  std::vector<unsigned char> bytes_;
  size_t first_ = 0;
};

// Of a matrix, or of (rows, heads, columns).
EmulatedTensorMap tensor_map(const TensorMapPlan& plan, const HstujitHostValue& value) {
  const auto box_rows = static_cast<int32_t>(plan.axes.back().box);
  if (plan.axes.size() == 2) return {value.data, value.shape[1], 1, value.shape[0], 0, value.strides[0], 1, box_rows};
  const auto box_heads = static_cast<int32_t>(plan.axes[1].box);
  return {value.data,       value.shape[2],   value.shape[1], value.shape[0],
          value.strides[1], value.strides[0], box_heads,      box_rows};
}

template <class T>
void put(unsigned char* params, uint32_t offset, T value) {
  std::memcpy(params + offset, &value, sizeof(T));
}

}  // namespace

EmulatedKernel::EmulatedKernel(const EmittedKernel& kernel) : plan_(kernel.plan) {
  const Result<TempDir> folder = TempDir::create(binary_path("/emulation"));
  if (!folder.ok()) throw std::runtime_error(folder.status().message());
  const fs::path source = folder->path() / "kernel.cpp", library = folder->path() / "kernel.so",
                 log = folder->path() / "log";
  std::ofstream(source) << host_source(kernel);
  // Compiles within the folder of the build, by relative names: ccache's key is then the same in every clone. Links to
  // no library but the compiler's own: this program has all others, and looking through them takes ten times as long.
  const std::string command = fmt::format(
      "cd {0} && {{ CCACHE_BASEDIR={4} {1} {2} {3} -I{5}/emulation -I{4} -I{4}/templates -c kernel.cpp -o kernel.o && "
      "{2} -shared -nostdlib kernel.o -lgcc -o kernel.so; }} > log 2>&1",
      folder->path().string(), HSTUJIT_EMULATION_LAUNCHER, HSTUJIT_CXX, HSTUJIT_EMULATION_FLAGS, source_path(),
      binary_path());
  const int code = std::system(command.c_str());
  if (code == 0) library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string words = code != 0 ? whole_file(log).value() : library_ == nullptr ? dlerror() : "";
  if (library_ == nullptr) throw std::runtime_error(plan_.kernel_name + ": " + words);
  for (size_t i = 0; i <= plan_.following.size(); ++i) {
    entries_.push_back(reinterpret_cast<void (*)(const void*)>(dlsym(library_, entry_name(i).c_str())));
  }
}

EmulatedKernel::~EmulatedKernel() { dlclose(library_); }

void EmulatedKernel::launch(const std::vector<HstujitHostValue>& values, unsigned seed, unsigned cluster) const {
  using Kind = ParamSlot::Kind;
  const std::vector<uint32_t> offsets = slot_offsets(plan_.slots);
  constexpr size_t kAlignment = 64;  // of tensor maps
  std::vector<unsigned char> storage(offsets.back() + kAlignment);
  const size_t misplaced = reinterpret_cast<uintptr_t>(storage.data()) % kAlignment;
  unsigned char* params = storage.data() + (kAlignment - misplaced);
  GuardedWorkspace workspace(plan_.workspace, values);
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
      case Kind::kLong:
        put(params, offsets[i], value.integer);
        break;
      case Kind::kInverse: {
        const int64_t fallback = values[static_cast<size_t>(slot.fallback)].integer;
        put(params, offsets[i], 1 / static_cast<float>(value.integer > 0 ? value.integer : fallback));
        break;
      }
      case Kind::kTensorMap:
        put(params, offsets[i], tensor_map(slot.map, value));
        break;
      case Kind::kWorkspace:
        put(params, offsets[i], workspace.region(slot.region));
        break;
    }
  }
  // A list is walked by few, so that each block has several tiles; by all of them at the same time or one after the
  // other, as where the GPU is taken by others.
  constexpr int64_t kListBlocks = 3;
  const auto run = [&](size_t entry, const std::vector<GridFactor>& factors, bool list, emulation::Grid grid) {
    // A kernel that is compiled for clusters counts their blocks, another one gets so many for each.
    const int64_t fixed = entry == 0 ? plan_.fixed_cluster : 1;
    const int64_t blocks = product_of(factors, values) / fixed, max = list ? kListBlocks : blocks;
    grid.blocks = static_cast<unsigned>(std::min(blocks, max)) * grid.cluster;
    if (list && seed % 2 == 1 && fixed == 1) grid.cluster = grid.blocks;
    emulation::launch(grid, seed, [&] { entries_[entry](params); });
  };
  run(0, plan_.grid, plan_.persistent_blocks > 0,
      {0, static_cast<unsigned>(plan_.threads), static_cast<size_t>(plan_.shared_memory),
       std::max(cluster, static_cast<unsigned>(plan_.fixed_cluster))});
  for (size_t i = 0; i < plan_.following.size(); ++i) {
    const FollowingKernel& kernel = plan_.following[i];
    run(i + 1, kernel.grid, kernel.max_blocks > 0,
        {0, static_cast<unsigned>(kernel.threads), static_cast<size_t>(kernel.shared_memory)});
  }
  workspace.check(plan_.kernel_name);
}

}  // namespace hstujit
