// A tar archive: its files, written again, are the same files.
#include "autotune_cache/bundle/tar.h"

#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

namespace {

void read_and_write(std::string_view input) {
  const auto entries = read_tar(input);
  if (!parsed(entries)) return;
  std::string written;
  for (const TarEntry& entry : *entries) {
    expect(entry.bytes.data() >= input.data() && entry.bytes.data() + entry.bytes.size() <= input.data() + input.size(),
           "the bytes of a file are within the archive");
    expect(append_to_tar(written, entry.name, entry.bytes).ok(), "a file that was read can be written");
  }
  finish_tar(written);
  const auto again = read_tar(written);
  expect(parsed(again), "an archive that is written is read");
  expect(std::equal(entries->begin(), entries->end(), again->begin(), again->end(),
                    [](const TarEntry& a, const TarEntry& b) { return a.name == b.name && a.bytes == b.bytes; }),
         "an archive that is written has the same files");
}

}  // namespace

void tar(std::string_view input) {
  read_and_write(input);
  read_and_write(with_header_checksums(std::string(input)));
}

}  // namespace hstujit::fuzz
