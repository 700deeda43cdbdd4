// A bundle, as bytes and as a layer of a cache.
#include "autotune_cache/bundle/bundle.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "autotune_cache/bundle/tar.h"
#include "autotune_cache/store/bundle_layer.h"
#include "compiler/support/descriptor.h"
#include "compiler/support/hash.h"
#include "tests/autotune_cache/zstd_frames.h"
#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

namespace {

// Uses a bundle as a cache does: the file is of memory alone.
void use_as_layer(const std::string& bytes) {
  const Descriptor file(::memfd_create("bundle", MFD_CLOEXEC));
  expect(::write(file.number(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "memory is there");
  const BundleLayer layer(fmt::format("/proc/self/fd/{}", file.number()), Trust::kAll, linked_decoder, Log());
  for (const VerifiedFile& entry : layer.verify()) {
    if (!entry.problem.empty()) expect_sentence(Status(Code::kIo, entry.problem));
  }
  for (const StoredArtifact& artifact : layer.artifacts())
    expect(layer.find_artifact(artifact.metadata.key.arch, artifact.digest).ok(), "a listed kernel is found");
  for (const StoredRecord& record : layer.records())
    expect(layer.find_record(record.digest).ok(), "a listed record is found");
}

// The bundle of these contents, with a manifest that is right.
std::string with_manifest(const std::string& contents) {
  std::string bundle;
  const std::string manifest =
      checked_file({{"files", 0}, {"bytes", contents.size()}, {"sha256", sha256_hex(contents)}}, "hstujit-bundle-1");
  expect(append_to_tar(bundle, "hstujit-bundle.json", manifest).ok(), "a manifest can be written");
  return bundle + contents;
}

}  // namespace

void bundle(std::string_view input) {
  if (const auto unpacked = Bundle::unpack(std::string(input), linked_decoder); parsed(unpacked))
    use_as_layer(std::string(input));
  const std::string made = with_manifest(with_header_checksums(std::string(input)));
  const auto unpacked = Bundle::unpack(made, linked_decoder);
  if (!parsed(unpacked)) return;
  std::map<std::string, std::string> files;
  for (const auto& [name, bytes] : (*unpacked)->files()) files.emplace(name, bytes);
  const auto packed = pack_bundle(files);
  expect(parsed(packed), "files of a bundle can be packed");
  const auto again = Bundle::unpack(packed->bytes, linked_decoder);
  expect(parsed(again) && (*again)->files() == (*unpacked)->files(), "what is packed is unpacked as the same");
  use_as_layer(made);
}

}  // namespace hstujit::fuzz
