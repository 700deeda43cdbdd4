#include "compiler/nvrtc/cubin.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>

namespace hstujit {
namespace {

constexpr uint16_t kMachineCuda = 190;       // EM_CUDA
constexpr unsigned char kEntryPoint = 0x10;  // st_other of a kernel, as opposed to a device function
constexpr unsigned char kEntryPointMask = 0x10;

Status malformed(std::string_view what) {
  return Status(Code::kCompileFailed, fmt::format("the bytes are not a usable cubin: {}", what));
}

template <typename T>
std::optional<T> read_at(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::optional<std::string_view> slice(std::string_view bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.substr(offset, size);
}

std::string name_at(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = table.substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

void read_kernels(std::string_view symbols, std::string_view names, std::vector<CubinKernel>& kernels) {
  for (uint64_t index = 0;; ++index) {
    const auto symbol = read_at<Elf64_Sym>(symbols, index * sizeof(Elf64_Sym));
    if (!symbol) return;
    const bool kernel = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
                        (symbol->st_other & kEntryPointMask) == kEntryPoint;
    if (kernel) kernels.push_back({name_at(names, symbol->st_name), static_cast<uint32_t>(index)});
  }
}

}  // namespace

const CubinSection* Cubin::find_section(std::string_view name) const {
  for (const CubinSection& section : sections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

Result<Cubin> parse_cubin(std::string_view bytes) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header) return malformed(fmt::format("{} bytes are too few", bytes.size()));
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return malformed("it does not begin as an ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    return malformed("it is not a little-endian file of 64 bits");
  if (header->e_machine != kMachineCuda)
    return malformed(fmt::format("it is for machine {}, not for CUDA ({})", header->e_machine, kMachineCuda));

  std::vector<Elf64_Shdr> headers;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = header->e_shoff <= bytes.size()
                             ? read_at<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr))
                             : std::nullopt;
    if (!section) return malformed("the section table passes the end");
    headers.push_back(*section);
  }
  if (header->e_shstrndx >= headers.size()) return malformed("it has no section names");
  const auto names = slice(bytes, headers[header->e_shstrndx].sh_offset, headers[header->e_shstrndx].sh_size);
  if (!names) return malformed("the section names pass the end");

  Cubin cubin;
  for (const Elf64_Shdr& section : headers) {
    std::string_view content;
    if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL) {
      const auto found = slice(bytes, section.sh_offset, section.sh_size);
      if (!found) return malformed(fmt::format("section {} passes the end", name_at(*names, section.sh_name)));
      content = *found;
    }
    cubin.sections.push_back({name_at(*names, section.sh_name), section.sh_type, section.sh_size, content});
  }
  for (size_t i = 0; i < headers.size(); ++i) {
    if (headers[i].sh_type != SHT_SYMTAB) continue;
    if (headers[i].sh_link >= headers.size()) return malformed("the symbol table has no names");
    read_kernels(cubin.sections[i].bytes, cubin.sections[headers[i].sh_link].bytes, cubin.kernels);
  }
  return cubin;
}

}  // namespace hstujit
