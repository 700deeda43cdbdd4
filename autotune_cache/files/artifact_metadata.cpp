#include "autotune_cache/files/artifact_metadata.h"

#include <fmt/format.h>

#include <utility>

#include "autotune_cache/files/checked_json.h"
#include "autotune_cache/files/member_types.h"
#include "compiler/support/json.h"
#include "compiler/support/memory.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

constexpr const char* kArtifactFormat = "hstujit-artifact-1";

Json key_to_json(const ArtifactKey& key) {
  return {{"generator", key.generator}, {"spec", key.spec}, {"direction", key.direction},
          {"config", key.config},       {"arch", key.arch}, {"options", key.options}};
}

ArtifactKey key_from_json(const Json& json) {
  ArtifactKey key;
  key.generator = text_member(json, "generator");
  key.spec = text_member(json, "spec");
  key.direction = text_member(json, "direction");
  key.config = text_member(json, "config");
  key.arch = text_member(json, "arch");
  if (const auto options = json.find("options"); options != json.end() && options->is_array()) {
    for (const Json& option : *options) key.options.push_back(option.is_string() ? option.get<std::string>() : "");
  }
  return key;
}

// Figures of a compiler about a kernel: people read these numbers, and programs add them up.
Status check_resources(const Json& resources) {
  if (!resources.is_object()) return Status(Code::kIo, "its resources are no JSON object");
  constexpr int64_t kMaxBytes = 1LL << 31;
  constexpr std::pair<const char*, int64_t> kMax[] = {{"registers", 65536},
                                                      {"spill_load_bytes", kMaxBytes},
                                                      {"spill_store_bytes", kMaxBytes},
                                                      {"stack_bytes", kMaxBytes},
                                                      {"static_shared_bytes", kMaxBytes}};
  for (const auto& [name, max] : kMax) {
    const auto member = resources.find(name);
    if (member == resources.end()) continue;
    const int64_t value = member->is_number_integer() ? member->get<int64_t>() : -1;
    if (value < 0 || value > max) {
      return Status(Code::kIo, fmt::format("its resources say that {} is {}; allowed: an integer from 0 to {}", name,
                                           brief_json(*member), max));
    }
  }
  if (const auto time = resources.find("compile_ms"); time != resources.end()) {  // of an earlier library
    constexpr double kLongest = 1e12;
    const double value = time->is_number() ? time->get<double>() : -1;
    if (!(value >= 0 && value <= kLongest))
      return Status(Code::kIo, fmt::format("its resources say that compile_ms is {}; allowed: a number from 0 to {}",
                                           brief_json(*time), kLongest));
  }
  constexpr const char* kWhere = "its resources: ";
  HSTUJIT_RETURN_IF_ERROR(check_text(resources, kWhere, "nvrtc"));
  for (const char* name : {"warnings", "rejects"}) HSTUJIT_RETURN_IF_ERROR(check_list(resources, kWhere, name));
  return {};
}

// Texts of an entry that tables and sentences show.
Status check_texts(const ArtifactInfo& info) {
  constexpr size_t kLongest = 256;
  for (const auto& [name, text] :
       {std::pair("kernel", &info.kernel), std::pair("nvrtc", &info.nvrtc), std::pair("library", &info.library)}) {
    if (text->size() > kLongest)
      return Status(Code::kIo, fmt::format("its {} has {} bytes; allowed: at most {}", name, text->size(), kLongest));
  }
  return {};
}

}  // namespace

Result<std::string> format_metadata(const ArtifactMetadata& metadata) {
  Json resources = json_or_null(metadata.info.resources);
  if (!resources.is_object()) resources = Json::object();
  return format_checked_json({{"format", kArtifactFormat},
                              {"kernel", metadata.info.kernel},
                              {"size", metadata.size},
                              {"sha256", metadata.sha256},
                              {"nvrtc", metadata.info.nvrtc},
                              {"library", metadata.info.library},
                              {"resources", std::move(resources)},
                              {"key", key_to_json(metadata.key)}},
                             kMaxMetadataBytes);
}

namespace {

Result<ArtifactMetadata> parsed_metadata(std::string_view text, std::string_view digest) {
  HSTUJIT_ASSIGN_OR_RETURN(const Json json, parse_checked_json(text, kArtifactFormat));
  ArtifactMetadata metadata;
  if (const auto key = json.find("key"); key != json.end() && key->is_object()) metadata.key = key_from_json(*key);
  const Result<std::string> own = artifact_digest(metadata.key);
  if (!own.ok() || *own != digest) return Status(Code::kIo, "it belongs to another key");

  for (const char* name : {"kernel", "nvrtc", "library", "sha256"}) HSTUJIT_RETURN_IF_ERROR(check_text(json, "", name));
  metadata.info.kernel = text_member(json, "kernel");
  metadata.info.nvrtc = text_member(json, "nvrtc");
  metadata.info.library = text_member(json, "library");
  HSTUJIT_RETURN_IF_ERROR(check_texts(metadata.info));
  if (const auto resources = json.find("resources"); resources != json.end()) {
    HSTUJIT_RETURN_IF_ERROR(check_resources(*resources));
    if (const std::string nvrtc = text_member(*resources, "nvrtc", metadata.info.nvrtc); nvrtc != metadata.info.nvrtc)
      return Status(Code::kIo, fmt::format("its resources are of NVRTC {}, and its nvrtc is {}", quote(nvrtc),
                                           quote(metadata.info.nvrtc)));
    metadata.info.resources = dump_json(*resources);
  }
  metadata.sha256 = text_member(json, "sha256");
  const int64_t size = integer_member(json, "size", -1);
  if (size < 0) return Status(Code::kIo, "it does not say the size of the cubin");
  metadata.size = static_cast<uint64_t>(size);
  return metadata;
}

}  // namespace

Result<ArtifactMetadata> parse_metadata(std::string_view text, std::string_view digest) {
  return within_memory("its metadata", [&] { return parsed_metadata(text, digest); });
}

}  // namespace hstujit
