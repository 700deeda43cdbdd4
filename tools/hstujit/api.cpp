#include "tools/hstujit/api.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include "compiler/support/json.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

// Sentences of the library begin with the argument that is wrong, which here came from an option.
Status naming_the_option(const Status& status) {
  const std::string& sentence = status.message();
  constexpr std::pair<std::string_view, std::string_view> kOptions[] = {{"op ", "--op "},
                                                                        {"arch ", "--arch "},
                                                                        {"arch: ", "--arch: "},
                                                                        {"version ", "--nvrtc "},
                                                                        {"directory: ", "--output: "}};
  constexpr std::string_view kNoDevice = "no device is given (the config's \"device\", or arch)";
  if (sentence.starts_with(kNoDevice)) {
    return Status(status.code(), "no device is given (the config's \"device\", or --arch, such as --arch H200)" +
                                     sentence.substr(kNoDevice.size()));
  }
  for (const auto& [argument, option] : kOptions) {
    if (sentence.starts_with(argument))
      return Status(status.code(), std::string(option) + sentence.substr(argument.size()));
  }
  return status;
}

}  // namespace

Status api_status(hstujit_status status) {
  if (status == HSTUJIT_OK) return {};
  const std::string sentence = hstujit_last_error();
  // Code mirrors hstujit_status value by value.
  return Status(static_cast<Code>(status),
                sentence.empty() ? fmt::format("the library returned {}", hstujit_status_name(status)) : sentence);
}

hstujit_context_options context_options(const std::string& cache_dir) {
  hstujit_context_options options = HSTUJIT_INIT(hstujit_context_options);
  if (!cache_dir.empty()) options.cache_dir = cache_dir.c_str();
  return options;
}

Result<ContextPtr> open_context(const std::string& cache_dir) {
  std::error_code error;
  if (!cache_dir.empty() && std::filesystem::exists(cache_dir, error) &&
      !std::filesystem::is_directory(cache_dir, error)) {
    return Status(Code::kInvalidArgument, fmt::format("--cache-dir is {}, which is no directory", quote(cache_dir)));
  }
  const hstujit_context_options options = context_options(cache_dir);
  hstujit_context* context = nullptr;
  HSTUJIT_RETURN_IF_ERROR(api_status(hstujit_context_create(&options, &context)));
  return ContextPtr(context);
}

Status of_input(std::string_view option, const std::string& path, const Status& status) {
  if (!status.message().starts_with(fmt::format("cannot read {}: ", quote(path)))) return status;
  const Code code = status.code() == Code::kIo ? Code::kInvalidArgument : status.code();
  return Status(code, status.message()).with_context(std::string(option));
}

Result<ConfigPtr> load_config(const std::string& path, std::string_view option) {
  hstujit_config* config = nullptr;
  HSTUJIT_RETURN_IF_ERROR(of_input(option, path, api_status(hstujit_config_load(path.c_str(), &config))));
  return ConfigPtr(config);
}

Result<ConfigPtr> load_recording(const std::string& path) {
  hstujit_config* config = nullptr;
  const Status status = api_status(hstujit_config_load_recording(path.c_str(), &config));
  if (!status.ok()) {
    const Status said = of_input("--from", path, status);
    return said.message() == status.message() ? status.with_context("--from") : said;
  }
  return ConfigPtr(config);
}

Result<Report> take_report(hstujit_status status, hstujit_text text) {
  Report report;
  report.status = naming_the_option(api_status(status));
  if (text.data != nullptr) report.text.assign(text.data, text.size);
  hstujit_text_free(&text);
  if (report.text.empty() && !report.status.ok()) return report.status;
  Result<Json> json = parse_json(report.text, {.depth = kMaxReportDepth});
  if (!json.ok()) return json.status().with_context("the library's report");
  report.json = std::move(json).value();
  if (!report.status.ok() && report.json.empty()) return report.status;
  return report;
}

std::string json_text(const Json& json) { return dump_json(json, 2); }

}  // namespace hstujit
