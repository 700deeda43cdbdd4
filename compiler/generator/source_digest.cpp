#include "compiler/generator/source_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/support/code_text.h"
#include "compiler/support/files.h"
#include "compiler/support/hash.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSourceBytes = size_t{16} << 20;
constexpr std::string_view kTemplates = "templates/";
constexpr std::string_view kCommon = "templates/common/";
constexpr std::string_view kOperatorBuilders = "compiler/ir/operators/";
constexpr std::string_view kOperatorFile = "/spec.cpp";
constexpr std::string_view kEntry = "/kernel.cuh", kHostSide = "/kernel.cpp";
constexpr std::string_view kConfigs = "compiler/plan/", kConfigEnd = "_config.h",
                           kAnyConfig = "compiler/plan/kernel_config.h";
// As compiler/emit/source.cpp and flatten.cpp have them; a test compares the digests with those of flattened text.
constexpr std::string_view kAlwaysThere[] = {"common/types.cuh", "common/math.cuh"};
constexpr std::string_view kDeclarations = "templates/common/regions.cuh";
// Everything in these folders is the shared part of the generator; of compiler/ir it is what they include.
constexpr std::string_view kShared[] = {"compiler/passes/", "compiler/emit/"};

// Implementations that decide nothing of a source. Their headers are not left out: constants in them count.
struct LeftOut {
  std::string_view below, ends;
  std::string_view reason;
  bool estimates = false;  // decides estimates
};
constexpr LeftOut kLeftOut[] = {
    {"templates/", "cost.cpp", "which config is tried first", true},
    {"compiler/spec/", "/reference.cpp", "what results are held to"},
    {"compiler/spec/", "/attention_call.cpp", "what results are held to"},
    {"compiler/spec/", "/mask.cpp", "what masks are held to"},
    {"compiler/spec/", "/score_formula.cpp", "what results are held to"},
    {"compiler/expression/", "/formula.cpp", "what results are held to"},
    {"compiler/spec/", "/error_variances.cpp", "how near results must be"},
    {"compiler/spec/", "/softmax_variances.cpp", "how near results must be"},
    {"compiler/spec/", "/inputs.cpp", "data that is made up"},
    {"compiler/spec/", "/work.cpp", "ceilings of reports"},
    {"compiler/spec/", "/call.cpp", "what bindings ask of callers"},
    {"compiler/spec/", "/mistakes.cpp", "messages"},
    {"compiler/spec/", "/json_place.cpp", "messages"},
    {"compiler/spec/", "/aliases.cpp", "other names in a config, the key has the values"},
    {"compiler/spec/", "/device_spec.cpp", "a file's values, the key has what counts of them"},
    {"compiler/support/", "/status.cpp", "messages"},
    {"compiler/support/", "/suggest.cpp", "messages"},
    {"compiler/support/", "/config_aliases.cpp", "names of earlier libraries, the key has those of today"},
    {"compiler/support/", "/json.cpp", "text that is read, and the comment above a source"},
    {"compiler/emit/", "/launcher.cpp", "the main beside a source"},
    {"compiler/emit/", "/launcher_support.cpp", "the main beside a source"},
    {"compiler/emit/", "/launcher_values.cpp", "the main beside a source"},
};

bool matches(const LeftOut& left, std::string_view path) {
  return path.starts_with(left.below) && path.ends_with(left.ends);
}

// The path of `#include "path"`, a line without comments; empty for another line.
std::string_view included_path(std::string_view line) {
  if (!line.starts_with("#include \"") && !line.starts_with("# include \"")) return {};
  const size_t begin = line.find('"') + 1;
  return line.substr(begin, line.find('"', begin) - begin);
}

// MLIR's and LLVM's own, which the version stands for, and what the build makes of a .td.
bool is_of_llvm(std::string_view path) { return path.starts_with("mlir/") || path.starts_with("llvm/"); }
bool is_generated(std::string_view path) { return path.ends_with(".inc"); }

// `code` without the paths of templates in literals: what lies there is in the digest itself.
std::string without_template_paths(const std::string& code) {
  constexpr std::string_view kEnd = ".cuh\"";
  std::string text;
  size_t from = 0;
  for (size_t end; (end = code.find(kEnd, from)) != std::string::npos;) {
    const size_t quote = code.rfind('"', end);
    const bool whole = quote != std::string::npos && quote >= from;
    text += code.substr(from, (whole ? quote + 1 : end) - from);
    text += "\"";
    from = end + kEnd.size();
  }
  return text + code.substr(from);
}

class SourceTree {
 public:
  static Result<SourceTree> read(const fs::path& root, ParsedSources& parsed) {
    SourceTree tree;
    for (const char* folder : {"compiler", "templates"}) {
      std::error_code error;
      for (fs::recursive_directory_iterator at(root / folder, error), end; !error && at != end; at.increment(error)) {
        const std::string type = at->path().extension();
        if (type != ".h" && type != ".cpp" && type != ".cuh" && type != ".td") continue;
        HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_file(at->path(), kMaxSourceBytes));
        const auto [file, is_new] = parsed.try_emplace(type + "\n" + text);
        if (is_new) file->second = parse(type, text);
        tree.files_.emplace(at->path().lexically_relative(root), file->second);
      }
      if (error) return file_error("list", root / folder, error.value());
    }
    for (const LeftOut& left : kLeftOut) {
      const bool found = std::any_of(tree.files_.begin(), tree.files_.end(),
                                     [&](const auto& file) { return matches(left, file.first); });
      if (!found) {
        return Status(Code::kInternal, fmt::format("compiler/generator leaves {}*{} out of digests ({}), and there is "
                                                   "no such file below {}",
                                                   left.below, left.ends, left.reason, root.native()));
      }
    }
    return tree;
  }

  const std::map<std::string, SourceFile, std::less<>>& files() const { return files_; }
  bool has(std::string_view path) const { return files_.contains(path); }

  // Every file but templates that `roots` lead to. `family`: whose config counts, of those that a KernelConfig may
  // hold. `estimates`: cost models are followed, too.
  Result<std::set<std::string>> closure(std::vector<std::string> roots, std::string_view family, bool estimates) const {
    std::set<std::string> seen;
    while (!roots.empty()) {
      const std::string path = std::move(roots.back());
      roots.pop_back();
      const bool left_out = std::any_of(std::begin(kLeftOut), std::end(kLeftOut), [&](const LeftOut& left) {
        return matches(left, path) && !(estimates && left.estimates);
      });
      const bool config = path.starts_with(kConfigs) && path.ends_with(kConfigEnd) && path != kAnyConfig;
      const bool other_config = config && path != fmt::format("{}{}{}", kConfigs, family, kConfigEnd);
      if (left_out || other_config || !seen.insert(path).second) continue;
      for (const std::string& include : files_.find(path)->second.includes) {
        if (has(include)) {
          roots.push_back(include);
        } else if (!is_of_llvm(include) && !is_generated(include)) {
          return missing(path, include);
        }
      }
      if (!path.ends_with(".h")) continue;
      const std::string stem = path.substr(0, path.size() - 2);
      for (const char* type : {".cpp", ".td"}) {
        if (has(stem + type)) roots.push_back(stem + type);
      }
    }
    return seen;
  }

  // The templates that `entry` leads to in the order in which they are flattened, those of common/ first.
  Result<std::vector<std::string>> templates_of(std::string_view entry) const {
    std::vector<std::string> common, own;
    std::set<std::string, std::less<>> seen;
    for (const std::string_view first : kAlwaysThere) {
      HSTUJIT_RETURN_IF_ERROR(add_template(first, "the emitter", seen, common, own));
    }
    HSTUJIT_RETURN_IF_ERROR(add_template(entry, "the skeleton", seen, common, own));
    common.insert(common.end(), own.begin(), own.end());
    return common;
  }

  const std::string& own_lines(const std::string& path) const { return files_.find(path)->second.own_lines; }
  const std::string& digest_of(const std::string& path) const { return files_.find(path)->second.digest; }

 private:
  static SourceFile parse(std::string_view type, const std::string& text) {
    if (type == ".td") return {{}, {}, sha256_hex(text)};
    SourceFile file;
    std::string lines;
    for (const std::string& line : split(without_comments(text), '\n')) {
      const std::string_view include = included_path(line);
      if (!include.empty()) file.includes.emplace_back(include);
      if (include.empty() || is_of_llvm(include)) lines += line + "\n";
      if (type != ".cuh" || line.empty() || !include.empty() || line == "#pragma once") continue;
      file.own_lines += line + "\n";
    }
    file.digest = sha256_hex(without_template_paths(lines));
    return file;
  }

  static Status missing(std::string_view path, std::string_view include) {
    return Status(Code::kInternal, fmt::format("{} includes \"{}\", which is no file of the tree", path, include));
  }

  Status add_template(std::string_view name, std::string_view from, std::set<std::string, std::less<>>& seen,
                      std::vector<std::string>& common, std::vector<std::string>& own) const {
    const std::string path = fmt::format("{}{}", kTemplates, name);
    if (path == kDeclarations || !seen.insert(path).second) return {};
    const auto file = files_.find(path);
    if (file == files_.end()) return missing(from, name);
    for (const std::string& include : file->second.includes) {
      HSTUJIT_RETURN_IF_ERROR(add_template(include, path, seen, common, own));
    }
    (path.starts_with(kCommon) ? common : own).push_back(path);
    return {};
  }

  std::map<std::string, SourceFile, std::less<>> files_;  // by path relative to the root
};

// Digests of files in an order that their paths have no say in.
void add_files(KeyHasher& hasher, const SourceTree& tree, const std::set<std::string>& files) {
  std::vector<std::string> digests;
  for (const std::string& path : files) digests.push_back(tree.digest_of(path));
  std::sort(digests.begin(), digests.end());
  for (const std::string& digest : digests) hasher.add("file", digest);
}

std::vector<std::string> shared_roots(const SourceTree& tree) {
  std::vector<std::string> roots;
  for (const auto& [path, file] : tree.files()) {
    const auto holds = [&](std::string_view folder) { return path.starts_with(folder); };
    if (path.ends_with(".cpp") && std::any_of(std::begin(kShared), std::end(kShared), holds)) roots.push_back(path);
  }
  return roots;
}

// `folder`: "templates/<family>/<name>/"
Result<SkeletonSources> digest_skeleton(const SourceTree& tree, const std::string& folder,
                                        std::string_view llvm_version) {
  SkeletonSources skeleton;
  const std::string name = folder.substr(kTemplates.size());
  const std::string host = fmt::format("{}{}", folder, kHostSide), family = name.substr(0, name.find('/'));
  skeleton.entry = fmt::format("{}{}", name, kEntry);
  HSTUJIT_ASSIGN_OR_RETURN(const auto templates, tree.templates_of(skeleton.entry));
  std::string flat;
  for (const std::string& path : templates) flat += tree.own_lines(path);
  skeleton.device = sha256_hex(flat);

  std::vector<std::string> roots = shared_roots(tree);
  roots.push_back(host);
  HSTUJIT_ASSIGN_OR_RETURN(const auto files, tree.closure(std::move(roots), family, false));
  KeyHasher source("hstujit-skeleton-source");
  source.add("llvm", llvm_version).add("device", skeleton.device);
  add_files(source, tree, files);
  skeleton.source = source.finish();
  skeleton.files.assign(files.begin(), files.end());
  skeleton.files.insert(skeleton.files.end(), templates.begin(), templates.end());
  std::sort(skeleton.files.begin(), skeleton.files.end());

  HSTUJIT_ASSIGN_OR_RETURN(const auto estimated, tree.closure({host, "compiler/plan/search_space.cpp"}, family, true));
  KeyHasher estimates("hstujit-skeleton-estimates");
  add_files(estimates, tree, estimated);
  skeleton.estimates = estimates.finish();
  return skeleton;
}

Result<OperatorSources> digest_operator(const SourceTree& tree, const std::string& folder) {
  OperatorSources op;
  op.op = folder.substr(folder.rfind('/') + 1);
  std::vector<std::string> roots;
  const std::string builder = fmt::format("{}{}.cpp", kOperatorBuilders, op.op);
  if (tree.has(builder)) roots.push_back(builder);
  for (const auto& [path, file] : tree.files()) {
    if (path.starts_with(folder + "/") && path.ends_with(".cpp")) roots.push_back(path);
  }
  HSTUJIT_ASSIGN_OR_RETURN(const auto files, tree.closure(std::move(roots), "", false));
  KeyHasher source("hstujit-operator-source");
  add_files(source, tree, files);
  op.source = source.finish();
  op.files.assign(files.begin(), files.end());
  return op;
}

}  // namespace

Result<GeneratorSources> digest_sources(const fs::path& root, std::string_view llvm_version, ParsedSources* parsed) {
  ParsedSources own;
  HSTUJIT_ASSIGN_OR_RETURN(const SourceTree tree, SourceTree::read(root, parsed == nullptr ? own : *parsed));
  GeneratorSources sources;
  std::vector<std::string> digests;
  for (const auto& [path, file] : tree.files()) {
    if (path.starts_with(kTemplates) && path.ends_with(kEntry)) {
      const std::string folder = path.substr(0, path.size() - kEntry.size());
      if (!tree.has(fmt::format("{}{}", folder, kHostSide))) continue;
      HSTUJIT_ASSIGN_OR_RETURN(SkeletonSources skeleton, digest_skeleton(tree, folder, llvm_version));
      digests.push_back(skeleton.source);
      sources.skeletons.push_back(std::move(skeleton));
    } else if (path.starts_with("compiler/spec/") && path.ends_with(kOperatorFile)) {
      HSTUJIT_ASSIGN_OR_RETURN(OperatorSources op,
                               digest_operator(tree, path.substr(0, path.size() - kOperatorFile.size())));
      digests.push_back(op.source);
      sources.operators.push_back(std::move(op));
    }
  }
  std::sort(digests.begin(), digests.end());
  KeyHasher all("hstujit-generator");
  for (const std::string& digest : digests) all.add("source", digest);
  sources.digest = all.finish();
  return sources;
}

}  // namespace hstujit
