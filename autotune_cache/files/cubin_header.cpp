#include "autotune_cache/files/cubin_header.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "compiler/support/arch.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

constexpr uint16_t kMachineCuda = 190;  // EM_CUDA

static_assert(sizeof(Elf64_Ehdr) == kCubinHeaderBytes);

// The number of the architecture, 90 of sm_90 and sm_90a, as the version of the header has it.
std::optional<int> arch_in(const Elf64_Ehdr& header) {
  constexpr int kUntilCuda12 = 7;
  constexpr int kFromCuda13 = 8;
  switch (header.e_ident[EI_ABIVERSION]) {
    case kUntilCuda12:
      return static_cast<int>(header.e_flags & 0xff);
    case kFromCuda13:
      return static_cast<int>(header.e_flags >> 8 & 0xff);
    default:
      return std::nullopt;
  }
}

}  // namespace

bool is_cubin(std::string_view bytes) { return bytes.size() >= kCubinHeaderBytes && bytes.starts_with(ELFMAG); }

Status check_cubin_arch(std::string_view bytes, std::string_view arch) {
  if (!is_cubin(bytes)) return Status(Code::kIo, "the cubin is no ELF image");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.e_machine == EM_NONE) return {};
  if (header.e_machine != kMachineCuda)
    return Status(Code::kIo, fmt::format("the cubin is for the machine {} of ELF, not for a GPU", header.e_machine));
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_ident[EI_VERSION] != EV_CURRENT) {
    return Status(Code::kIo, "the cubin is an ELF image, but no 64-bit little-endian one of version 1");
  }
  const std::optional<int> own = arch_in(header);
  if (!own || own == arch_number(arch)) return {};
  return Status(Code::kIo, fmt::format("the cubin is for sm_{}, and its key says {}", *own, quote(arch)));
}

}  // namespace hstujit
