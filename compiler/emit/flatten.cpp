#include "compiler/emit/flatten.h"

#include <fmt/format.h>

#include <set>

#include "compiler/emit/identifier.h"

namespace hstujit {

namespace {

constexpr std::string_view kCommon = "common/";
constexpr std::string_view kInclude = "#include";
constexpr std::string_view kRegions = "common/regions.cuh";

// The path between the quotes of an #include line; empty for another line.
std::string_view included_path(std::string_view line) {
  if (!line.starts_with(kInclude)) return {};
  const size_t begin = line.find('"'), end = line.rfind('"');
  if (begin == std::string_view::npos || end <= begin) return line.substr(kInclude.size());
  return line.substr(begin + 1, end - begin - 1);
}

// The name behind an #include line that is for some instances only; empty for a line that is for all.
std::string_view condition_of(std::string_view line) {
  constexpr std::string_view kWhere = "// where ";
  const size_t at = line.find(kWhere);
  return at == std::string_view::npos ? std::string_view() : line.substr(at + kWhere.size());
}

// The name of a line that is "<directive> NAME"; empty for another line.
std::string_view name_of(std::string_view line, std::string_view directive) {
  return line.starts_with(directive) ? line.substr(directive.size()) : std::string_view();
}

class Flattener {
 public:
  Flattener(const std::vector<EmbeddedTemplate>& templates, std::optional<std::string_view> generated)
      : templates_(templates), generated_(generated) {}

  Status add(std::string_view path, std::string_view from) {
    if (path == kRegions || !seen_.insert(path).second) return {};
    const EmbeddedTemplate* file = find(path);
    if (!file) return Status(Code::kInternal, fmt::format("template {} includes {}, which is no template", from, path));
    const bool common = path.starts_with(kCommon);
    if (!common && from.starts_with(kCommon)) {
      return Status(Code::kInternal,
                    fmt::format("template {} includes {}; files of common/ are of no operator, and may "
                                "include files of common/ only",
                                from, path));
    }
    std::string body;
    bool kept = true, decided = false;  // a part between #ifdef and #endif, one of the parts so far
    for (size_t begin = 0; begin < file->text.size();) {
      const size_t end = std::min(file->text.find('\n', begin), file->text.size());
      const std::string_view line = file->text.substr(begin, end - begin);
      begin = end + 1;
      if (const std::string_view next = included_path(line); !next.empty()) {
        const std::string_view condition = condition_of(line);
        if (!condition.empty() && generated_ && !is_defined(condition)) continue;
        HSTUJIT_RETURN_IF_ERROR(add(next, path));
      } else if (const std::string_view name = name_of(line, "#ifdef "); generated_ && !name.empty()) {
        kept = decided = is_defined(name);
      } else if (const std::string_view other = name_of(line, "#elifdef "); generated_ && !other.empty()) {
        kept = !decided && is_defined(other);
        decided = decided || kept;
      } else if (generated_ && line == "#else") {
        kept = !decided;
      } else if (generated_ && line == "#endif") {
        kept = true;
      } else if (kept && !line.starts_with("#pragma once")) {
        body.append(line).push_back('\n');
      }
    }
    // A file's title is its own first comment: a path would make another source of a file that moves.
    (common ? flat.common : flat.own) += fmt::format("// ----\n{}\n", body);
    return {};
  }

  FlatTemplate flat;

 private:
  bool is_defined(std::string_view name) const { return names_identifier(*generated_, name); }

  const EmbeddedTemplate* find(std::string_view path) const {
    for (const EmbeddedTemplate& file : templates_) {
      if (file.path == path) return &file;
    }
    return nullptr;
  }

  const std::vector<EmbeddedTemplate>& templates_;
  const std::optional<std::string_view> generated_;
  std::set<std::string_view> seen_;
};

}  // namespace

Result<FlatTemplate> flatten_template(const std::vector<EmbeddedTemplate>& templates, std::string_view entry,
                                      const std::vector<std::string_view>& first,
                                      std::optional<std::string_view> generated) {
  Flattener flattener(templates, generated);
  for (const std::string_view path : first) HSTUJIT_RETURN_IF_ERROR(flattener.add(path, "the emitter"));
  HSTUJIT_RETURN_IF_ERROR(flattener.add(entry, "the skeleton"));
  return std::move(flattener.flat);
}

}  // namespace hstujit
