#include "compiler/nvrtc/resource_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "compiler/nvrtc/cubin.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

// Records of .nv.info: a format byte, an attribute byte, then 16 bits that are the value or, for kSizedValue, its size.
constexpr unsigned char kSizedValue = 4;
constexpr unsigned char kFrameSize = 0x11;      // (kernel symbol, stack bytes of a thread)
constexpr unsigned char kRegisterCount = 0x2f;  // (kernel symbol, registers of a thread)

// Where the assembler reserves shared memory for the system (sm_90 and newer), a kernel's section counts it.
constexpr int64_t kReservedSharedBytes = 1024;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number that stands before `unit` in `line`: 12 in "Used 12 registers".
std::optional<int64_t> number_before(std::string_view line, std::string_view unit) {
  const size_t at = line.find(unit);
  if (at == std::string_view::npos) return std::nullopt;
  size_t end = at;
  while (end > 0 && line[end - 1] == ' ') --end;
  size_t begin = end;
  while (begin > 0 && is_digit(line[begin - 1])) --begin;
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(line.data() + begin, line.data() + end, number);
  if (begin == end || error != std::errc() || stop != line.data() + end) return std::nullopt;
  return number;
}

// The "75xx" of a message "(C75xx) ..."; 0 when the line is none.
int advisory_number(std::string_view line) {
  constexpr std::string_view kOpening = "(C75";
  const size_t at = line.find(kOpening);
  if (at == std::string_view::npos || line.size() < at + kOpening.size() + 3) return 0;
  const std::string_view digits = line.substr(at + kOpening.size(), 2);
  if (!is_digit(digits[0]) || !is_digit(digits[1]) || line[at + kOpening.size() + 2] != ')') return 0;
  return 7500 + 10 * (digits[0] - '0') + (digits[1] - '0');
}

// Numbers differ between assembler versions more than words do, so the words decide first.
std::string advisory_reason(std::string_view line, int number) {
  const auto says = [line](std::string_view words) { return line.find(words) != std::string_view::npos; };
  if (says("setmaxnreg")) return "setmaxnreg_ignored";
  if (says("serializ")) return "wgmma_serialized";
  if (says("injected")) return "wgmma_wait_injected";
  switch (number) {
    case 7504:
    case 7508:
      return "setmaxnreg_ignored";
    case 7512:
    case 7520:
      return "wgmma_serialized";
    default:
      return "assembler_advisory";
  }
}

std::string trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return std::string(line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1));
}

uint32_t word_at(std::string_view bytes, size_t offset) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// Calls visit(attribute, symbol, value) for the records of .nv.info that say one number about one symbol.
template <typename Visitor>
void for_each_symbol_record(std::string_view info, Visitor&& visit) {
  size_t at = 0;
  while (at + 4 <= info.size()) {
    const auto format = static_cast<unsigned char>(info[at]);
    const auto attribute = static_cast<unsigned char>(info[at + 1]);
    const size_t size = static_cast<unsigned char>(info[at + 2]) | static_cast<unsigned char>(info[at + 3]) << 8;
    at += 4;
    if (format != kSizedValue) continue;
    if (info.size() - at < size) return;
    if (size == 8) visit(attribute, word_at(info, at), word_at(info, at + 4));
    at += size;
  }
}

}  // namespace

std::vector<std::string> log_warnings(std::string_view log) {
  std::vector<std::string> warnings;
  for (const std::string& raw : split(log, '\n')) {
    const bool front_end = raw.find(": warning") != std::string::npos;
    const bool assembler = raw.starts_with("ptxas warning") || raw.starts_with("nvrtc: warning");
    if (!front_end && !assembler && advisory_number(raw) == 0) continue;
    std::string line = trimmed(raw);
    if (std::find(warnings.begin(), warnings.end(), line) == warnings.end()) warnings.push_back(std::move(line));
  }
  return warnings;
}

Result<Resources> resources_from_log(std::string_view log, std::string_view entry) {
  // "Compiling entry function 'k'" opens a kernel's part; its figures follow until the next such line.
  const std::string opening = fmt::format("Compiling entry function '{}'", entry);
  Resources resources;
  bool inside = false;
  bool found = false;
  for (const std::string& line : split(log, '\n')) {
    if (line.find("Compiling entry function '") != std::string::npos) inside = line.find(opening) != std::string::npos;
    if (!inside) continue;
    if (const auto bytes = number_before(line, "bytes stack frame")) resources.stack_bytes = *bytes;
    if (const auto bytes = number_before(line, "bytes spill stores")) resources.spill_store_bytes = *bytes;
    if (const auto bytes = number_before(line, "bytes spill loads")) resources.spill_load_bytes = *bytes;
    if (const auto bytes = number_before(line, "bytes smem")) resources.static_shared_bytes = *bytes;
    if (const auto count = number_before(line, "registers")) {
      resources.registers = *count;
      found = true;
    }
  }
  if (!found)
    return Status(Code::kNotFound, fmt::format("the assembler's log has no figures for kernel \"{}\"", entry));
  resources.warnings = log_warnings(log);
  return resources;
}

Result<Resources> resources_from_cubin(std::string_view bytes, std::string_view entry) {
  HSTUJIT_ASSIGN_OR_RETURN(const Cubin cubin, parse_cubin(bytes));
  const auto kernel = std::find_if(cubin.kernels.begin(), cubin.kernels.end(),
                                   [entry](const CubinKernel& candidate) { return candidate.name == entry; });
  if (kernel == cubin.kernels.end()) {
    std::string defined;
    for (const CubinKernel& other : cubin.kernels) defined += (defined.empty() ? "" : ", ") + other.name;
    return Status(Code::kNotFound, fmt::format("the cubin defines no kernel \"{}\"; it defines: {}", entry,
                                               defined.empty() ? "none" : defined));
  }

  Resources resources;
  if (const CubinSection* info = cubin.find_section(".nv.info")) {
    for_each_symbol_record(info->bytes, [&](unsigned char attribute, uint32_t symbol, uint32_t value) {
      if (symbol != kernel->symbol) return;
      if (attribute == kRegisterCount) resources.registers = value;
      if (attribute == kFrameSize) resources.stack_bytes = value;
    });
  }
  if (const CubinSection* shared = cubin.find_section(".nv.shared." + std::string(entry))) {
    const bool reserved = cubin.find_section(".nv.shared.reserved.0") != nullptr;
    const auto size = static_cast<int64_t>(shared->size);
    resources.static_shared_bytes = reserved ? std::max<int64_t>(0, size - kReservedSharedBytes) : size;
  }
  return resources;
}

Result<Resources> merged_resources(std::string_view cubin, std::string_view log,
                                   const std::vector<std::string>& entries) {
  Resources worst;
  worst.warnings = log_warnings(log);
  for (const std::string& entry : entries) {
    Result<Resources> of_kernel = resources_from_cubin(cubin, entry);
    if (!of_kernel.ok()) return Status(Code::kCompileFailed, of_kernel.status().message());
    if (Result<Resources> from_log = resources_from_log(log, entry); from_log.ok()) of_kernel = std::move(from_log);
    for (const auto figure : {&Resources::registers, &Resources::spill_store_bytes, &Resources::spill_load_bytes,
                              &Resources::stack_bytes, &Resources::static_shared_bytes}) {
      worst.*figure = std::max(worst.*figure, (*of_kernel).*figure);
    }
  }
  return worst;
}

std::vector<KernelReject> reject_reasons(const Resources& resources, std::string_view log) {
  std::vector<KernelReject> rejects;
  if (resources.spill_store_bytes > 0 || resources.spill_load_bytes > 0) {
    rejects.push_back(
        {"spill", fmt::format("{} registers do not suffice: a thread stores {} and loads {} bytes of "
                              "spilled registers",
                              resources.registers, resources.spill_store_bytes, resources.spill_load_bytes)});
  }
  for (const std::string& raw : split(log, '\n')) {
    const int number = advisory_number(raw);
    if (number == 0) continue;
    KernelReject reject{advisory_reason(raw, number), trimmed(raw)};
    if (std::find(rejects.begin(), rejects.end(), reject) == rejects.end()) rejects.push_back(std::move(reject));
  }
  return rejects;
}

}  // namespace hstujit
