#include "compiler/emit/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace hstujit {

namespace {

// The part that every launcher has.
constexpr std::string_view kSupport = R"cuda(
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#define CHECK(call)                                                                                    \
  do {                                                                                                 \
    const cudaError_t error_ = (call);                                                                 \
    if (error_ != cudaSuccess) {                                                                       \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));  \
      std::exit(1);                                                                                    \
    }                                                                                                  \
  } while (false)

// The batch: B sequences of random lengths up to max_seq_len, with L rows in all.
struct Batch {
  int64_t max_seq_len = 0;
  std::vector<int64_t> offsets{0};
  int64_t rows() const { return offsets.back(); }
  int64_t sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  // `most` targets for each sequence, but no more than it has rows.
  std::vector<int64_t> targets(int64_t most) const {
    std::vector<int64_t> counts;
    for (size_t i = 1; i < offsets.size(); ++i) counts.push_back(std::min(most, offsets[i] - offsets[i - 1]));
    return counts;
  }
  // Where the last rows of each sequence begin among those of all, and how many there are: `most`, or all it has.
  std::vector<int64_t> query_offsets(int64_t most) const {
    std::vector<int64_t> result{0};
    for (size_t i = 1; i < offsets.size(); ++i) result.push_back(result.back() + std::min(most, offsets[i] - offsets[i - 1]));
    return result;
  }
};

static std::mt19937_64 generator(1);

static Batch make_batch(int sequences, int64_t max_seq_len) {
  Batch batch;
  batch.max_seq_len = max_seq_len;
  std::uniform_int_distribution<int64_t> length(max_seq_len / 5, max_seq_len);
  for (int i = 0; i < sequences; ++i) batch.offsets.push_back(batch.offsets.back() + length(generator));
  return batch;
}

[[maybe_unused]] static uint16_t to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// For |value| in [2^-14, 65504]; smaller ones become zero.
[[maybe_unused]] static uint16_t to_fp16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude < 0x38800000) return static_cast<uint16_t>(sign);
  const uint32_t rebased = magnitude - 0x38000000;
  return static_cast<uint16_t>(sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
}

// As elements of T; integers only.
template <typename T>
static std::vector<T> convert(const std::vector<int64_t>& values) {
  return std::vector<T>(values.begin(), values.end());
}

template <typename T>
static T* upload(const std::vector<T>& values) {
  T* data = nullptr;
  CHECK(cudaMalloc(&data, std::max<size_t>(values.size(), 1) * sizeof(T)));
  CHECK(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return data;
}

template <typename T, typename Convert>
static T* random_tensor(int64_t elements, Convert convert) {
  std::vector<T> values(static_cast<size_t>(elements));
  std::uniform_real_distribution<float> value(-1.0f, 1.0f);
  for (T& v : values) v = convert(value(generator));
  return upload(values);
}

// Tensor map over (rows, heads, columns), innermost last, 128-byte swizzle.
[[maybe_unused]] static TensorMap encode_map(void* data, CUtensorMapDataType type, int element_bytes, int64_t rows, int64_t heads, int64_t columns,
                            int box_columns, int box_rows) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
#else
  CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    std::fprintf(stderr, "the driver has no cuTensorMapEncodeTiled: it must be 12.0 or newer\n");
    std::exit(1);
  }
  alignas(64) CUtensorMap map;
  const cuuint64_t sizes[3] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(heads), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[2] = {static_cast<cuuint64_t>(columns * element_bytes),
                                 static_cast<cuuint64_t>(heads * columns * element_bytes)};
  const cuuint32_t box[3] = {static_cast<cuuint32_t>(box_columns), 1, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[3] = {1, 1, 1};
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
      &map, type, 3, data, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    std::fprintf(stderr, "cuTensorMapEncodeTiled failed with %d\n", static_cast<int>(result));
    std::exit(1);
  }
  TensorMap encoded;
  static_assert(sizeof encoded == sizeof map, "a tensor map is 128 bytes");
  std::memcpy(&encoded, &map, sizeof map);
  return encoded;
}

[[maybe_unused]] static int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }
)cuda";

struct DeviceType {
  const char* name;     // what the buffer holds
  const char* convert;  // from float
  const char* tensor_map;
};

DeviceType device_type(DataType type) {
  switch (type) {
    case DataType::kBf16:
      return {"uint16_t", "to_bf16", "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16"};
    case DataType::kFp16:
      return {"uint16_t", "to_fp16", "CU_TENSOR_MAP_DATA_TYPE_FLOAT16"};
    case DataType::kFp32:
      return {"float", "[](float x) { return x; }", "CU_TENSOR_MAP_DATA_TYPE_FLOAT32"};
    case DataType::kInt32:
      return {"int32_t", "", "CU_TENSOR_MAP_DATA_TYPE_INT32"};
    case DataType::kInt64:
      return {"int64_t", "", "CU_TENSOR_MAP_DATA_TYPE_INT64"};
  }
  return {"", "", ""};
}

bool is_real(DataType type) { return type != DataType::kInt32 && type != DataType::kInt64; }

// What a launch gets where a signature says no more than a name and a type. Whatever is not in this table is a member
// of the program's `struct Chosen`, for its user to change:
//
//   symbol    L                 rows of the batch
//             B                 its sequences
//             Lq                the last Chosen::max_delta_len rows of each sequence, or all it has
//             another           Chosen::size_<symbol>, 1024
//   integer   max_seq_len       the batch's
//             max_delta_len     Chosen::max_delta_len, 64
//             another           Chosen::<name>, 0: an optional size is at its default
//   real      every             Chosen::<name>, 1
//   tensor    seq_offsets       the batch's
//             seq_offsets_q     as Lq
//             num_targets       Chosen::num_targets for each sequence, but never more than it has rows
//             other integers    0, which is a valid index and a valid count
//             reals             random numbers in [-1, 1)
struct Known {
  std::string_view name;
  std::string_view text;
};
constexpr Known kSymbols[] = {
    {"L", "batch.rows()"}, {"B", "batch.sequences()"}, {"Lq", "batch.query_offsets(Chosen::max_delta_len).back()"}};
constexpr Known kScalars[] = {{"max_seq_len", "batch.max_seq_len"}};
constexpr Known kChosenScalars[] = {{"max_delta_len", "64"}};
constexpr Known kIntegerTensors[] = {{"seq_offsets", "batch.offsets"},
                                     {"seq_offsets_q", "batch.query_offsets(Chosen::max_delta_len)"},
                                     {"num_targets", "batch.targets(Chosen::num_targets)"}};

template <size_t count>
std::string_view look_up(const Known (&table)[count], std::string_view name) {
  for (const Known& known : table) {
    if (known.name == name) return known.text;
  }
  return {};
}

std::string scalar_text(std::string_view name) {
  const std::string_view known = look_up(kScalars, name);
  return known.empty() ? fmt::format("Chosen::{}", name) : std::string(known);
}

std::string size_text(const Dimension& dimension) {
  if (dimension.is_constant()) return fmt::to_string(dimension.bias);
  if (dimension.is_scalar()) return scalar_text(dimension.integer);
  const std::string_view known = look_up(kSymbols, dimension.symbol);
  std::string size = known.empty() ? fmt::format("Chosen::size_{}", dimension.symbol) : std::string(known);
  if (dimension.is_uniform()) size = fmt::format("{} * {}", size, scalar_text(dimension.integer));
  if (dimension.factor != 1) size = fmt::format("{} * {}", dimension.factor, size);
  if (dimension.bias == 0) return size;
  return fmt::format("({} {} {})", size, dimension.bias < 0 ? '-' : '+', std::abs(dimension.bias));
}

// Elements of the axes from `first` on. Tensors are contiguous, but rows as long as an integer says end where the
// alignment lets the next one begin.
std::string elements_text(const Argument& argument, size_t first = 0) {
  std::string text;
  for (size_t i = first; i < argument.shape.size(); ++i) {
    std::string size = size_text(argument.shape[i]);
    const int64_t unit = argument.alignment / static_cast<int64_t>(size_of(argument.dtype));
    if (argument.shape[i].is_scalar() && i > 0 && i + 1 == argument.shape.size() && unit > 1)
      size = fmt::format("ceil_divide({0}, {1}) * {1}", size, unit);
    text += (text.empty() ? "" : " * ") + size;
  }
  return text.empty() ? "1" : text;
}

// `struct Chosen` of the table above; empty when nothing is left to choose.
std::string print_choices(const Signature& signature) {
  std::vector<std::string> members;
  const auto add = [&](std::string member) {
    if (std::find(members.begin(), members.end(), member) == members.end()) members.push_back(std::move(member));
  };
  for (const Argument& argument : signature) {
    for (const Dimension& dimension : argument.shape) {
      if (dimension.symbol.empty() || !look_up(kSymbols, dimension.symbol).empty()) continue;
      add(fmt::format("  static constexpr int64_t size_{} = 1024;\n", dimension.symbol));
    }
    if (argument.kind == ArgumentKind::kInt && look_up(kScalars, argument.name).empty()) {
      const std::string_view usual = look_up(kChosenScalars, argument.name);
      add(fmt::format("  static constexpr int64_t {} = {};\n", argument.name, usual.empty() ? "0" : usual));
    }
    if (argument.kind == ArgumentKind::kFloat) add(fmt::format("  static constexpr double {} = 1.0;\n", argument.name));
    if (argument.kind == ArgumentKind::kTensor && argument.name == "num_targets")
      add("  static constexpr int64_t num_targets = 8;  // of a sequence, when it has that many rows\n");
  }
  if (members.empty()) return {};
  std::string text = "\n// What the kernel does not say: change it to what the model has.\nstruct Chosen {\n";
  for (const std::string& member : members) text += member;
  return text + "};\n";
}

std::string declare_argument(const Argument& argument) {
  if (argument.kind != ArgumentKind::kTensor) {
    const bool real = argument.kind == ArgumentKind::kFloat;
    return fmt::format("  const {} {} = {};\n", real ? "double" : "int64_t", argument.name,
                       real ? "Chosen::" + argument.name : scalar_text(argument.name));
  }
  const DeviceType type = device_type(argument.dtype);
  if (is_real(argument.dtype)) {
    return fmt::format("  {0}* const {1} = random_tensor<{0}>({2}, {3});\n", type.name, argument.name,
                       elements_text(argument), type.convert);
  }
  const std::string_view known = look_up(kIntegerTensors, argument.name);
  const std::string values = known.empty() ? fmt::format("std::vector<{}>({}, 0)", type.name, elements_text(argument))
                                           : fmt::format("convert<{}>({})", type.name, known);
  return fmt::format("  {}* const {} = upload({});\n", type.name, argument.name, values);
}

std::string slot_value(const Signature& signature, const ParamSlot& slot) {
  const Argument& argument = signature[static_cast<size_t>(slot.argument)];
  const auto dimension = static_cast<size_t>(slot.dimension);
  switch (slot.kind) {
    case ParamSlot::Kind::kPointer:
      return fmt::format("reinterpret_cast<{}>({})", slot.type, argument.name);
    case ParamSlot::Kind::kStride:
      return elements_text(argument, dimension + 1);
    case ParamSlot::Kind::kSize:
      return fmt::format("{} + {}", size_text(argument.shape[dimension]), slot.bias);
    case ParamSlot::Kind::kFloat:
      return fmt::format("static_cast<float>({})", argument.name);
    case ParamSlot::Kind::kInt:
      return fmt::format("static_cast<int>({})", argument.name);
    case ParamSlot::Kind::kInverse:
      return fmt::format("1.0f / static_cast<float>({0} > 0 ? {0} : {1})", argument.name,
                         signature[static_cast<size_t>(slot.fallback)].name);
    case ParamSlot::Kind::kTensorMap:
      return fmt::format("encode_map({}, {}, {}, {}, {}, {}, {}, {})", argument.name,
                         device_type(argument.dtype).tensor_map, size_of(argument.dtype), size_text(argument.shape[0]),
                         size_text(argument.shape[1]), size_text(argument.shape[2]), slot.map.box_columns,
                         slot.map.box_rows);
    case ParamSlot::Kind::kWorkspace:
      return fmt::format("reinterpret_cast<{}>(workspace + region_{})", slot.type, slot.region);
  }
  return {};
}

std::string factor_text(const Signature& signature, const GridFactor& factor) {
  switch (factor.source) {
    case GridFactor::Source::kConstant:
      return fmt::to_string(factor.constant);
    case GridFactor::Source::kScalar:
      return fmt::format("ceil_divide({} + {}, {})", signature[static_cast<size_t>(factor.argument)].name, factor.bias,
                         factor.divisor);
    case GridFactor::Source::kSize: {
      const Argument& argument = signature[static_cast<size_t>(factor.argument)];
      return fmt::format("ceil_divide({} + {}, {})", size_text(argument.shape[static_cast<size_t>(factor.dimension)]),
                         factor.bias, factor.divisor);
    }
  }
  return {};
}

std::string product_text(const Signature& signature, const std::vector<GridFactor>& factors) {
  std::string text;
  for (const GridFactor& factor : factors) text += (text.empty() ? "" : " * ") + factor_text(signature, factor);
  return text.empty() ? "1" : text;
}

std::string grid_text(const Signature& signature, const std::vector<GridFactor>& grid, int64_t most_blocks) {
  const std::string blocks = product_text(signature, grid);
  return most_blocks > 0 ? fmt::format("std::min<int64_t>({}, {})", blocks, most_blocks) : blocks;
}

// Allocates it, with the offset of each region.
std::string print_workspace(const Signature& signature, const WorkspacePlan& workspace) {
  if (workspace.regions.empty()) return "";
  std::string text = "\n";
  for (size_t i = 0; i < workspace.regions.size(); ++i) {
    text += i == 0 ? "  const int64_t region_0 = 0;\n"
                   : fmt::format("  const int64_t region_{0} = ceil_divide(region_{1}_end, {2}) * {2};\n", i, i - 1,
                                 WorkspacePlan::kAlignment);
    text += fmt::format("  const int64_t region_{0}_end = region_{0} + {1};\n", i,
                        product_text(signature, workspace.regions[i].bytes));
  }
  return text + fmt::format(
                    "  const size_t workspace_bytes = static_cast<size_t>(region_{}_end);\n"
                    "  char* workspace = nullptr;\n"
                    "  CHECK(cudaMalloc(&workspace, workspace_bytes));\n",
                    workspace.regions.size() - 1);
}

// The body of the loop that is timed: all that one launch enqueues.
std::string print_launch(const LaunchPlan& plan) {
  std::string text;
  const std::vector<WorkspaceRegion>& regions = plan.workspace.regions;
  const auto kept = std::find_if(regions.begin(), regions.end(), [](const auto& region) { return !region.cleared; });
  if (kept != regions.begin()) {
    text += fmt::format("    CHECK(cudaMemsetAsync(workspace, 0, {}));\n",
                        kept == regions.end() ? "workspace_bytes" : fmt::format("region_{}", kept - regions.begin()));
  }
  text += fmt::format(
      "    {}<<<static_cast<unsigned>(blocks), {}, {}>>>(params);\n"
      "    CHECK(cudaGetLastError());\n",
      plan.kernel_name, plan.threads, plan.shared_memory);
  for (const FollowingKernel& kernel : plan.following) {
    text += fmt::format(
        "    {0}<<<static_cast<unsigned>({0}_blocks), {1}>>>(params);\n"
        "    CHECK(cudaGetLastError());\n",
        kernel.kernel_name, kernel.threads);
  }
  return text;
}

}  // namespace

std::string nvcc_target(const DeviceSpec& device) {
  std::string number = device.arch;
  if (number.starts_with("sm_")) number.erase(0, 3);
  return fmt::format("-gencode arch=compute_{0},code=sm_{0}", number);
}

std::string launcher_file(const LaunchPlan& plan) { return plan.kernel_name + "_main.cu"; }

std::string print_launcher(const OpSpec& spec, Direction direction, const LaunchPlan& plan, const DeviceSpec& device) {
  const Signature signature = spec.signature(direction);
  std::string text = fmt::format(
      "// Launches {0} on random input and prints its time.\n"
      "// Build: nvcc -std=c++17 {1} {2} -o {0}\n"
      "// Run:   ./{0} [sequences [max_seq_len]]\n"
      "#include \"{0}.cu\"\n",
      plan.kernel_name, nvcc_target(device), launcher_file(plan));
  text += kSupport;
  text += print_choices(signature);
  text +=
      "\nint main(int argc, char** argv) {\n"
      "  const int sequences = argc > 1 ? std::atoi(argv[1]) : 64, longest = argc > 2 ? std::atoi(argv[2]) : 1024;\n"
      "  if (sequences < 1 || longest < 1) {\n"
      "    std::fprintf(stderr, \"usage: %s [sequences [max_seq_len]], both at least 1\\n\", argv[0]);\n"
      "    return 2;\n"
      "  }\n"
      "  const Batch batch = make_batch(sequences, longest);\n";
  for (const Argument& argument : signature) text += declare_argument(argument);
  text += print_workspace(signature, plan.workspace);
  text += "\n  Params params = {};\n";
  for (const ParamSlot& slot : plan.slots)
    text += fmt::format("  params.{} = {};\n", slot.name, slot_value(signature, slot));
  text += fmt::format("\n  const int64_t blocks = {};\n", grid_text(signature, plan.grid, plan.persistent_blocks));
  for (const FollowingKernel& kernel : plan.following) {
    text += fmt::format("  const int64_t {}_blocks = {};\n", kernel.kernel_name,
                        grid_text(signature, kernel.grid, kernel.most_blocks));
  }
  text += fmt::format(
      "  CHECK(cudaFuncSetAttribute({0}, cudaFuncAttributeMaxDynamicSharedMemorySize, {1}));\n"
      "  cudaEvent_t begin, end;\n"
      "  CHECK(cudaEventCreate(&begin));\n"
      "  CHECK(cudaEventCreate(&end));\n"
      "  constexpr int kWarmups = 3, kRepeats = 20;\n"
      "  for (int i = 0; i < kWarmups + kRepeats; ++i) {{\n"
      "    if (i == kWarmups) CHECK(cudaEventRecord(begin));\n"
      "{2}"
      "  }}\n"
      "  CHECK(cudaEventRecord(end));\n"
      "  CHECK(cudaDeviceSynchronize());\n"
      "  float milliseconds = 0;\n"
      "  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));\n"
      "  std::printf(\"{0}: %lld rows, %.3f ms\\n\", static_cast<long long>(batch.rows()), milliseconds / kRepeats);\n"
      "  return 0;\n"
      "}}\n",
      plan.kernel_name, plan.shared_memory, print_launch(plan));
  return text;
}

}  // namespace hstujit
