#include "tools/hstujit/grid.h"

#include <fmt/format.h>

#include <filesystem>

#include "tools/hstujit/api.h"

namespace hstujit {

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
