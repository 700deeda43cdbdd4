#include "compiler/generator/source_digest.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "compiler/generator/generator_digest.h"
#include "compiler/support/files.h"
#include "tests/paths.h"
#include "tests/support/sanitized.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr const char* kLlvm = "22.1";
constexpr const char* kCode = "\nint added_by_a_test;\n";

// A copy of what the digests are made of, to be edited.
class SourceDigestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempDir::create();
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    folder_.emplace(std::move(*folder));
    const fs::path source = source_path();
    for (const char* name : {"compiler", "templates"}) {
      fs::copy(source / name, root() / name, fs::copy_options::recursive);
    }
    before_ = digests();
  }

  const fs::path& root() const { return folder_->path(); }
  std::string read(const std::string& path) const { return *read_file(root() / path, kMaxBytes); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root() / path).parent_path());
    std::ofstream(root() / path, std::ios::binary) << text;
  }
  void append(const std::string& path, const std::string& text = kCode) const { write(path, read(path) + text); }

  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::recursive_directory_iterator(root())) {
      const std::string type = entry.path().extension();
      if (type == ".h" || type == ".cpp" || type == ".cuh" || type == ".td") {
        paths.push_back(entry.path().lexically_relative(root()));
      }
    }
    return paths;
  }

  // Moves a file, or a folder with what is in it, and says so wherever it is included or named as a template.
  void move(const std::string& from, const std::string& to) const {
    fs::create_directories((root() / to).parent_path());
    fs::rename(root() / from, root() / to);
    const char* const end = fs::is_directory(root() / to) ? "/" : "\"";
    constexpr size_t kPrefix = std::string_view("templates/").size();
    std::vector<std::pair<std::string, std::string>> names = {{"\"" + from + end, "\"" + to + end}};
    if (from.starts_with("templates/"))
      names.push_back({"\"" + from.substr(kPrefix) + end, "\"" + to.substr(kPrefix) + end});
    for (const std::string& path : files()) {
      const std::string before = read(path);
      const auto names_it = [&](const auto& name) { return before.find(name.first) != std::string::npos; };
      if (std::none_of(names.begin(), names.end(), names_it)) continue;
      std::istringstream stream(before);
      std::string text;
      for (std::string line; std::getline(stream, line); text += line + "\n") {
        if (line.find("#include") == std::string::npos && line.find(".cuh\"") == std::string::npos) continue;
        for (const auto& [old_name, new_name] : names) {
          if (const size_t at = line.find(old_name); at != std::string::npos)
            line.replace(at, old_name.size(), new_name);
        }
      }
      write(path, text);
    }
  }

  GeneratorSources sources() const {
    auto sources = digest_sources(root(), kLlvm, &parsed_);
    EXPECT_TRUE(sources.ok()) << sources.status().message();
    return sources.ok() ? *std::move(sources) : GeneratorSources();
  }
  static std::map<std::string, std::string> digests_of(const GeneratorSources& sources) {
    std::map<std::string, std::string> digests;
    for (const SkeletonSources& skeleton : sources.skeletons) digests["skeleton " + skeleton.entry] = skeleton.source;
    for (const OperatorSources& op : sources.operators) digests["operator " + op.op] = op.source;
    return digests;
  }
  std::map<std::string, std::string> digests() const { return digests_of(sources()); }

  // Names of the digests that differ from those of the unedited tree.
  std::set<std::string> changed() const {
    std::set<std::string> names;
    for (const auto& [name, digest] : digests()) {
      const auto found = before_.find(name);
      if (found == before_.end() || found->second != digest) names.insert(name);
    }
    return names;
  }
  std::map<std::string, std::string> estimates() const {
    std::map<std::string, std::string> digests;
    for (const SkeletonSources& skeleton : sources().skeletons) digests[skeleton.entry] = skeleton.estimates;
    return digests;
  }

  std::optional<TempDir> folder_;
  mutable ParsedSources parsed_;
  std::map<std::string, std::string> before_;
};

TEST_F(SourceDigestTest, TheBuildHasThoseOfItsTree) {
  const GeneratorSources sources = *digest_sources(root(), "another");
  ASSERT_EQ(sources.skeletons.size(), skeleton_digests().size());
  for (size_t i = 0; i < sources.skeletons.size(); ++i) {
    EXPECT_EQ(sources.skeletons[i].entry, skeleton_digests()[i].entry);
    EXPECT_EQ(sources.skeletons[i].device, skeleton_digests()[i].device);
    EXPECT_NE(sources.skeletons[i].source, skeleton_digests()[i].source) << "LLVM's version counts";
  }
  ASSERT_EQ(sources.operators.size(), operator_digests().size());
  for (size_t i = 0; i < sources.operators.size(); ++i) {
    EXPECT_EQ(sources.operators[i].op, operator_digests()[i].op);
    EXPECT_EQ(sources.operators[i].source, operator_digests()[i].source);
  }
}

TEST_F(SourceDigestTest, ReferencesDataAndBoundsDecideNothing) {
  for (const char* name : {"reference", "attention_call", "mask", "error_variances", "inputs", "work"}) {
    append("compiler/spec/operators/hstu_attention/" + std::string(name) + ".cpp");
  }
  append("compiler/spec/operators/hstu_attention/attention_call.h");
  append("compiler/spec/closeness.cpp");
  append("compiler/spec/config.cpp");
  append("compiler/emit/launcher.cpp");
  EXPECT_EQ(changed(), std::set<std::string>());
}

TEST_F(SourceDigestTest, CostConstantsChangeEstimatesAlone) {
  const auto estimates_before = estimates();
  for (const std::string& path : files()) {
    if (path.ends_with("cost.cpp") || path.ends_with("tile_counts.cpp")) append(path);
  }
  append("templates/attention/sm80/cost_rates.h");
  EXPECT_EQ(changed(), std::set<std::string>());
  for (const auto& [entry, digest] : estimates()) EXPECT_NE(digest, estimates_before.at(entry)) << entry;
}

TEST_F(SourceDigestTest, ATemplateChangesTheSkeletonsThatHaveIt) {
  const GeneratorSources whole = sources();
  constexpr size_t kEvery = kSanitized ? 23 : 1;  // which takes minutes otherwise
  size_t found = 0, edited = 0;
  for (const std::string& path : files()) {
    if (!path.ends_with(".cuh") || found++ % kEvery != 0) continue;
    const std::string text = read(path);
    append(path);
    std::set<std::string> users;
    for (const SkeletonSources& skeleton : whole.skeletons) {
      const bool has = std::find(skeleton.files.begin(), skeleton.files.end(), path) != skeleton.files.end();
      if (has) users.insert("skeleton " + skeleton.entry);
    }
    EXPECT_EQ(changed(), users) << path;
    EXPECT_EQ(users.empty(), path.ends_with("regions.cuh")) << path << " is of no skeleton";
    write(path, text);
    ++edited;
  }
  EXPECT_GT(edited, 20U / kEvery);
}

TEST_F(SourceDigestTest, ASkeletonsOwnFilesAreNoOthers) {
  append("templates/attention/sm90_backward_twopass/kernel.cuh");
  append("templates/attention/sm90_backward_twopass/kernel.cpp");
  append("templates/attention/sm90_backward_twopass/resources.cpp");
  EXPECT_EQ(changed(), std::set<std::string>({"skeleton attention/sm90_backward_twopass/kernel.cuh"}));
}

TEST_F(SourceDigestTest, AnotherFamilyChangesNothingHere) {
  write("compiler/spec/operators/my_norm/spec.cpp", "#include \"compiler/spec/op_spec.h\"\nint a;\n");
  write("compiler/ir/operators/my_norm.cpp", "#include \"compiler/ir/build.h\"\n");
  write("templates/row/norm/kernel.cuh", "#include \"common/jagged.cuh\"\nint a;\n");
  write("templates/row/norm/kernel.cpp", "#include \"compiler/plan/skeleton.h\"\nint b;\n");
  const std::set<std::string> added = {"operator my_norm", "skeleton row/norm/kernel.cuh"};
  EXPECT_EQ(changed(), added);
  before_ = digests();
  append("templates/row/norm/kernel.cuh");
  append("compiler/ir/operators/my_norm.cpp");
  EXPECT_EQ(changed(), added);
  append("compiler/plan/row_config.h");
  std::set<std::string> rows = added;
  rows.insert({"skeleton row/forward/kernel.cuh", "skeleton row/backward/kernel.cuh",
               "skeleton row/segment_backward/kernel.cuh", "skeleton row/table_backward/kernel.cuh",
               "skeleton row/table_backward_atomic/kernel.cuh"});
  EXPECT_EQ(changed(), rows);
}

TEST_F(SourceDigestTest, WhatAllHaveInCommonChangesAll) {
  for (const char* path : {"compiler/emit/source.cpp", "compiler/emit/flatten.cpp", "compiler/passes/pipeline.cpp",
                           "compiler/passes/differentiate.cpp", "compiler/ir/hstu.td", "compiler/plan/launch_plan.cpp",
                           "compiler/plan/kernel_config.h", "compiler/plan/attention_config.h",
                           "compiler/spec/operators/hstu_attention/params.h", "compiler/spec/fields_json.cpp",
                           "compiler/support/integers.h"}) {
    const bool attention = std::string_view(path).find("attention") != std::string_view::npos;
    const std::string text = read(path);
    append(path);
    const std::set<std::string> names = changed();
    for (const auto& [name, digest] : before_) {
      if (name.starts_with(attention ? "skeleton attention/" : "skeleton ")) {
        EXPECT_THAT(names, Contains(name)) << path;
      }
    }
    write(path, text);
  }
}

TEST_F(SourceDigestTest, TheMaskChangesItsOperators) {
  for (const char* path : {"compiler/ir/attention.cpp", "compiler/ir/mask_functions.cpp"}) {
    const std::string text = read(path);
    append(path);
    EXPECT_EQ(changed(), std::set<std::string>({"operator delta_hstu_attention", "operator hstu_attention"})) << path;
    write(path, text);
  }
  const auto other = digest_sources(root(), "another version");
  ASSERT_TRUE(other.ok());
  for (const auto& [name, digest] : digests_of(*other)) {
    if (name.starts_with("skeleton ")) {
      EXPECT_NE(digest, before_[name]) << name;
    }
  }
}

TEST_F(SourceDigestTest, CommentsAndLayoutChangeNothing) {
  const GeneratorSources whole = sources();
  for (const std::string& path : files()) {
    if (path.ends_with(".td")) continue;
    write(path, "// A title, \"quoted\".\n/* and\n more */\n\n" + read(path) + "  // the end\n\n");
  }
  EXPECT_EQ(changed(), std::set<std::string>());
  const GeneratorSources commented = sources();
  EXPECT_EQ(commented.digest, whole.digest);
  for (size_t i = 0; i < whole.skeletons.size(); ++i) {
    EXPECT_EQ(commented.skeletons[i].estimates, whole.skeletons[i].estimates);
  }
}

TEST_F(SourceDigestTest, MovedFilesChangeNothing) {
  const GeneratorSources whole = sources();
  move("templates/common/math.cuh", "templates/common/ptx/approximate.cuh");
  write("templates/common/math.cuh", "#include \"common/ptx/approximate.cuh\"\n");  // the emitter's name
  move("templates/common/jagged.cuh", "templates/common/schedule/jagged.cuh");
  move("templates/attention/operands/pair.cuh", "templates/attention/sm80/bias_of_all.cuh");
  move("templates/attention/sm90", "templates/attention/hopper");
  move("templates/attention/host", "templates/attention/shared/host");
  for (const char* type : {".h", ".cpp"}) {
    move("compiler/passes/transposer" + std::string(type), "compiler/passes/rows/turned" + std::string(type));
  }
  move("compiler/spec/operators", "compiler/spec/all_operators");
  const GeneratorSources moved = sources();
  EXPECT_EQ(moved.digest, whole.digest);
  ASSERT_EQ(moved.skeletons.size(), whole.skeletons.size());
  for (size_t i = 0; i < whole.skeletons.size(); ++i) {
    EXPECT_NE(moved.skeletons[i].files, whole.skeletons[i].files);
    EXPECT_EQ(moved.skeletons[i].device, whole.skeletons[i].device) << whole.skeletons[i].entry;
    EXPECT_EQ(moved.skeletons[i].source, whole.skeletons[i].source) << whole.skeletons[i].entry;
    EXPECT_EQ(moved.skeletons[i].estimates, whole.skeletons[i].estimates) << whole.skeletons[i].entry;
  }
  EXPECT_EQ(changed(), std::set<std::string>());
}

// Every skeleton's digest has all that the emitter reaches, but for what is listed here.
TEST_F(SourceDigestTest, TheWholeGeneratorIsInEveryDigest) {
  const std::map<std::string, std::string> left_out = {
      {"compiler/emit/launcher", "the main beside a source"},
      {"compiler/ir/operators/", "of operators, whose digests they are in"},
      {"compiler/ir/attention.", "of operators"},
      {"compiler/ir/expression.", "of operators"},
      {"compiler/ir/gemm_builder.", "of operators"},
      {"compiler/ir/jagged_sides.", "of operators"},
      {"compiler/ir/mask_functions.", "of operators"},
      {"compiler/ir/positions.", "of operators"},
      {"compiler/ir/row_builder.", "of operators"},
      {"compiler/ir/row_index.", "of operators"},
      {"compiler/ir/scores.", "of operators"}};
  const GeneratorSources whole = sources();
  size_t checked = 0;
  for (const std::string& path : files()) {
    const auto below = [&](std::string_view folder) { return path.starts_with(folder); };
    if (!below("compiler/emit/") && !below("compiler/passes/") && !below("compiler/ir/")) continue;
    const bool listed =
        std::any_of(left_out.begin(), left_out.end(), [&](const auto& row) { return below(row.first); });
    ++checked;
    for (const SkeletonSources& skeleton : whole.skeletons) {
      const bool has = std::find(skeleton.files.begin(), skeleton.files.end(), path) != skeleton.files.end();
      EXPECT_NE(has, listed) << path << " and " << skeleton.entry;
    }
  }
  EXPECT_GT(checked, 40U);
}

TEST_F(SourceDigestTest, WhatIsNotThereIsNamed) {
  append("compiler/emit/source.cpp", "#include \"compiler/emit/elsewhere.h\"\n");
  EXPECT_THAT(digest_sources(root(), kLlvm).status().message(),
              HasSubstr("compiler/emit/source.cpp includes \"compiler/emit/elsewhere.h\", which is no file"));
  append("templates/attention/operands/pair.cuh", "#include \"common/elsewhere.cuh\"\n");
  EXPECT_THAT(digest_sources(root(), kLlvm).status().message(), HasSubstr("common/elsewhere.cuh"));
  fs::remove(root() / "compiler/spec/operators/hstu_attention/inputs.cpp");
  EXPECT_THAT(digest_sources(root(), kLlvm).status().message(), HasSubstr("compiler/spec/*/inputs.cpp"));
}

TEST(GeneratorDigest, OneForEachOperatorAndSkeleton) {
  std::set<std::string> digests;
  for (const SkeletonDigests& skeleton : skeleton_digests()) {
    for (const OperatorDigest& op : operator_digests()) digests.insert(kernel_generator(op.op, skeleton.entry));
    EXPECT_EQ(estimates_digest(skeleton.entry), skeleton.estimates);
  }
  EXPECT_EQ(digests.size(), skeleton_digests().size() * operator_digests().size());
  EXPECT_THAT(digests, Not(Contains(std::string(generator_digest()))));
  EXPECT_EQ(kernel_generator("hstu_attention", "a test's"), generator_digest());
  EXPECT_EQ(estimates_digest("a test's"), "");
}

}  // namespace
}  // namespace hstujit
