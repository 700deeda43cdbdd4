#include "compiler/support/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "compiler/support/descriptor.h"
#include "compiler/support/files.h"

namespace hstujit {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "which machine do this build's libraries name?"
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
constexpr unsigned char kByteOrder = ELFDATA2LSB;
#else
constexpr unsigned char kByteOrder = ELFDATA2MSB;
#endif

// A copy: the bytes lie at any address.
template <class Header>
Header header_at(std::string_view bytes, size_t offset) {
  Header header;
  std::memcpy(&header, bytes.data() + offset, sizeof(header));
  return header;
}

Status cut_off(uint64_t size, uint64_t needed) {
  return Status(Code::kIo,
                fmt::format("it is cut off: it has {} bytes, and its headers tell of at least {}", size, needed));
}

Status read_at(const std::filesystem::path& path, off_t offset, std::string& bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid()) return Status(Code::kIo, file_error("read", path, errno).message());
  for (size_t used = 0; used < bytes.size();) {
    const ssize_t got =
        ::pread(file.number(), bytes.data() + used, bytes.size() - used, offset + static_cast<off_t>(used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status(Code::kIo, file_error("read", path, errno).message());
    if (got == 0) return Status(Code::kIo, "it became shorter while it was looked at");
    used += static_cast<size_t>(got);
  }
  return {};
}

// Checks the headers of an ELF file; `no_elf` for another file, and for headers that make no sense.
Status check_headers(const std::filesystem::path& path, const Status& no_elf, std::string_view kind,
                     bool may_be_fixed) {
  const Result<FileHead> start = read_file_head(path, sizeof(Elf64_Ehdr));
  if (!start.ok() || !std::string_view(start->bytes).starts_with(std::string_view(ELFMAG, SELFMAG))) return no_elf;
  if (start->bytes.size() < sizeof(Elf64_Ehdr)) return cut_off(start->size, sizeof(Elf64_Ehdr));
  const auto header = header_at<Elf64_Ehdr>(start->bytes, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kByteOrder || header.e_machine != kMachine)
    return Status(Code::kIo, fmt::format("it is a {} for another kind of machine", kind));
  const Status no_sense(Code::kIo, fmt::format("it is no {}", kind));
  const bool is_of_type = header.e_type == ET_DYN || (may_be_fixed && header.e_type == ET_EXEC);
  if (!is_of_type || header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr)) return no_sense;

  // Wherever it lies: tools that change a finished library put a longer one at its end.
  std::string table(sizeof(Elf64_Phdr) * header.e_phnum, '\0');
  if (header.e_phoff > uint64_t{std::numeric_limits<off_t>::max()} - table.size()) return no_sense;
  const uint64_t table_end = header.e_phoff + table.size();
  if (table_end > start->size) return cut_off(start->size, table_end);
  HSTUJIT_RETURN_IF_ERROR(read_at(path, static_cast<off_t>(header.e_phoff), table));
  for (int i = 0; i < header.e_phnum; ++i) {
    const auto segment = header_at<Elf64_Phdr>(table, sizeof(Elf64_Phdr) * i);
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t end = segment.p_offset + segment.p_filesz;
    if (end < segment.p_offset) return no_sense;
    if (end > start->size) return cut_off(start->size, end);
  }
  return {};
}

}  // namespace

Status check_shared_library(const std::filesystem::path& path) {
  HSTUJIT_RETURN_IF_ERROR(check_regular_file("load", path));
  constexpr std::string_view kKind = "shared library";
  return check_headers(path, Status(Code::kIo, fmt::format("it is no {}", kKind)), kKind, false);
}

Status check_program(const std::filesystem::path& path) {
  HSTUJIT_RETURN_IF_ERROR(check_regular_file("execute", path));
  return check_headers(path, {}, "program", true);
}

}  // namespace hstujit
