#include "tools/hstujit/recording.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "tools/hstujit/api.h"

namespace hstujit {

Result<std::string> config_of_recording(std::string_view text, const std::string& origin) {
  Json ops = Json::array();
  std::set<std::string> seen;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    const std::string_view entry = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (entry.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Json op = Json::parse(entry, nullptr, /*allow_exceptions=*/false);
    if (!op.is_object()) {
      return Status(Code::kInvalidConfig,
                    fmt::format("{}:{}: not a JSON object; allowed: lines that HSTUJIT_RECORD wrote", origin, line));
    }
    if (seen.insert(op.dump()).second) ops.push_back(std::move(op));
  }
  if (ops.empty()) return Status(Code::kInvalidConfig, fmt::format("{}: no recorded miss in it", origin));
  return Json{{"version", 1}, {"ops", std::move(ops)}}.dump();
}

Result<std::string> config_of_grid(std::string_view text, const std::string& origin) {
  Json ops = Json::parse(text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  if (ops.is_discarded()) return std::string(text);
  if (!ops.is_array()) {
    return Status(Code::kInvalidConfig,
                  fmt::format("{}: a grid is a JSON list of op instances; a config goes to --config", origin));
  }
  // Files are relative to the grid, and the library will not know where that lies.
  const std::filesystem::path folder = std::filesystem::path(origin).parent_path();
  for (Json& op : ops) {
    if (!op.is_object() || !op.contains("lengths") || !op["lengths"].is_object()) continue;
    const auto file = op["lengths"].find("file");
    if (file != op["lengths"].end() && file->is_string()) *file = (folder / file->get<std::string>()).string();
  }
  return Json{{"version", 1}, {"ops", std::move(ops)}}.dump();
}

}  // namespace hstujit
