#include "autotune_cache/bundle/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <numeric>

#include "compiler/support/text.h"

namespace hstujit {
namespace {

// The header of POSIX.1-1988: a block of text fields. Numbers are octal digits.
constexpr size_t kBlock = 512;
struct Field {
  size_t begin;
  size_t size;
};
constexpr Field kName = {0, 100};
constexpr Field kMode = {100, 8};
constexpr Field kOwner = {108, 8};
constexpr Field kGroup = {116, 8};
constexpr Field kSize = {124, 12};
constexpr Field kTime = {136, 12};
constexpr Field kChecksum = {148, 8};
constexpr Field kType = {156, 1};
constexpr Field kTarMagic = {257, 8};
constexpr std::string_view kMagicText("ustar\00000", 8);
constexpr std::string_view kRegularFile = "0";
constexpr uint64_t kLargestFile = 077777777777;  // what 11 octal digits can say

std::string_view text_in(std::string_view header, Field field) {
  const std::string_view text = header.substr(field.begin, field.size);
  return text.substr(0, text.find('\0'));
}

void set(std::string& header, Field field, std::string_view text) { header.replace(field.begin, text.size(), text); }

// The last character of a number's field stays NUL.
void set_number(std::string& header, Field field, uint64_t number) {
  set(header, field, fmt::format("{:0{}o}", number, field.size - 1));
}

// The sum of the header's bytes, its own field taken for blanks.
uint64_t checksum_of(std::string header) {
  header.replace(kChecksum.begin, kChecksum.size, kChecksum.size, ' ');
  return std::accumulate(header.begin(), header.end(), uint64_t{0},
                         [](uint64_t sum, char byte) { return sum + static_cast<unsigned char>(byte); });
}

bool read_number(std::string_view header, Field field, uint64_t* number) {
  std::string_view text = text_in(header, field);
  text = text.substr(0, text.find(' '));
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, *number, 8);
  return error == std::errc() && rest == end;
}

size_t padded(size_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

}  // namespace

Status append_to_tar(std::string& tar, std::string_view name, std::string_view bytes) {
  if (name.empty() || name.size() > kName.size || bytes.size() > kLargestFile) {
    return Status(Code::kInvalidArgument,
                  fmt::format("the name {} of {} bytes cannot be that of a file in a ustar archive; it has 1 to {} "
                              "characters, and the file at most {} bytes",
                              quote(name), bytes.size(), kName.size, kLargestFile));
  }
  std::string header(kBlock, '\0');
  set(header, kName, name);
  set_number(header, kMode, 0644);
  set_number(header, kOwner, 0);
  set_number(header, kGroup, 0);
  set_number(header, kSize, bytes.size());
  set_number(header, kTime, 0);
  set(header, kType, kRegularFile);
  set(header, kTarMagic, kMagicText);
  set_number(header, kChecksum, checksum_of(header));
  tar.append(header).append(bytes).append(padded(bytes.size()) - bytes.size(), '\0');
  return {};
}

void finish_tar(std::string& tar) { tar.append(2 * kBlock, '\0'); }

Result<TarEntry> read_tar_entry(std::string_view tar, size_t at, size_t archive_size) {
  if (tar.size() - at < kBlock) {
    return Status(Code::kIo, fmt::format("its tar archive ends within a header{}",
                                         at == 0 ? ": a file of less than 512 bytes is no bundle" : ""));
  }
  const std::string_view header = tar.substr(at, kBlock);
  uint64_t checksum = 0;
  uint64_t size = 0;
  if (header.substr(kTarMagic.begin, kTarMagic.size) != kMagicText || !read_number(header, kChecksum, &checksum) ||
      checksum != checksum_of(std::string(header)) || !read_number(header, kSize, &size)) {
    return Status(Code::kIo, fmt::format("at byte {} of its tar archive there is no ustar header{}", at,
                                         at == 0 ? ", as every bundle begins with" : ""));
  }
  const std::string_view name = text_in(header, kName);
  if (text_in(header, kType) != kRegularFile)
    return Status(Code::kIo, fmt::format("{} in its tar archive is no plain file", quote(name)));
  at += kBlock;
  if (size > tar.size() - at && size <= archive_size - at) {
    return Status(Code::kIo, fmt::format("{} in its tar archive has {} bytes, and at most {} of it are read",
                                         quote(name), size, tar.size() - at));
  }
  if (size > tar.size() - at)
    return Status(Code::kIo, fmt::format("its tar archive ends within {}, which has {} bytes", quote(name), size));
  const size_t end = std::min(at + padded(size), tar.size());
  if (tar.substr(at + size, end - at - size).find_first_not_of('\0') != std::string_view::npos)
    return Status(Code::kIo, fmt::format("bytes that belong to no file follow {} in its tar archive", quote(name)));
  return TarEntry{name, tar.substr(at, size), end};
}

Result<std::vector<TarEntry>> read_tar(std::string_view tar) {
  std::vector<TarEntry> entries;
  for (size_t at = 0; at < tar.size();) {
    if (tar[at] == '\0') {  // the end: what follows is padding
      const size_t data = tar.find_first_not_of('\0', at);
      if (data == std::string_view::npos) return entries;
      return Status(Code::kIo, fmt::format("bytes that belong to no file follow the end of its tar archive, the first "
                                           "one at byte {}",
                                           data));
    }
    HSTUJIT_ASSIGN_OR_RETURN(const TarEntry entry, read_tar_entry(tar, at, tar.size()));
    entries.push_back(entry);
    at = entry.end;
  }
  return Status(Code::kIo, "its tar archive has no end");
}

}  // namespace hstujit
