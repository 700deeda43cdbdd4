// hstujit cache, what explain says of the cache, and the files that commands write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <regex>

#include "autotune_cache/bundle/bundle.h"
#include "autotune_cache/store/artifact_store.h"
#include "autotune_cache/store/tuning_database.h"
#include "compiler/support/files.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"
#include "tests/autotune_cache/samples.h"
#include "tests/paths.h"
#include "tests/support/whole_file.h"
#include "tests/tools/exit_codes.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

TEST(Explain, NamesTheNearestEntryAndWhatDiffers) {
  const Scratch scratch;
  const std::vector<std::string> explain = {"explain", "--config",    scratch.config(), "--arch",
                                            "sm_90a",  "--cache-dir", scratch.cache()};
  std::vector<std::string> as_json = explain;
  as_json.emplace_back("--json");
  const auto fields = hstujit_tool(as_json).json()["instances"][0]["key_fields"];
  const ArtifactKey key = {.generator = "another build",
                           .spec = fields["spec"],
                           .direction = fields["direction"],
                           .config = fields["config"],
                           .options = {"-lineinfo"},
                           .arch = fields["arch"]};
  ArtifactStore store(CacheDirectories{.user = scratch.cache(), .read_only = {}}, Log());
  ASSERT_TRUE(store.put(key, cubin_of("of another build"), {}));
  // Lines are as wide as tables are: this one is broken where a path is long.
  const std::string text = std::regex_replace(hstujit_tool(explain).out, std::regex("\\s+"), " ");
  EXPECT_THAT(text, HasSubstr(artifact_digest(key)->substr(0, 12) + " in " + scratch.cache() +
                              " differs in generator (another build, not " +
                              fields["generator"].get<std::string>().substr(0, 12) + ") and options (-lineinfo, not "));
}

TEST(Cache, PathFollowsOptionThenEnvironment) {
  EXPECT_EQ(hstujit_tool({"cache", "path", "--cache-dir", "/a/b"}).out, "/a/b\n");
  EXPECT_EQ(hstujit_tool({"cache", "path"}, {{"HSTUJIT_CACHE_DIR", "/c"}}).out, "/c\n");
  EXPECT_EQ(hstujit_tool({"cache", "path"}, {{"XDG_CACHE_HOME", "/d"}}).out, "/d/hstujit\n");
  const Outcome none = hstujit_tool({"cache", "path"}, {{"XDG_CACHE_HOME", ""}, {"HOME", ""}});
  EXPECT_EQ(none.code, kBadRequest);
  EXPECT_THAT(none.err, HasSubstr("HSTUJIT_CACHE_DIR"));
}

// prune is about the directory that is written alone.
TEST(Cache, WhatIsOnlyReadAndPassedOverIsNamed) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.cache());
  const std::string cut = scratch.file("cut.tar.zst", "no bundle"), gone = (scratch.path() / "gone").string();
  for (const std::string& layer : {cut, gone}) {
    const auto cache = [&](std::vector<std::string> command) {
      command.insert(command.begin(), "cache");
      command.insert(command.end(), {"--cache-dir", scratch.cache()});
      return hstujit_tool(command, {{"HSTUJIT_CACHE_PATH", layer}});
    };
    EXPECT_THAT(cache({"ls"}).err, HasSubstr(layer + " is not read: "));
    EXPECT_EQ(cache({"ls", "--json"}).json()["not_read"][0]["path"], layer);
    EXPECT_EQ(cache({"verify"}).code, kFailed);
    EXPECT_EQ(cache({"export", (scratch.path() / "bundle").string()}).code, kFailed);
    EXPECT_FALSE(std::filesystem::exists(scratch.path() / "bundle"));
    EXPECT_EQ(cache({"prune", "--max-bytes", "0"}).code, kDone);
  }
}

TEST(Cache, VerifyNamesAFileWhoseNameIsNoUtf8) {
  const Scratch scratch;
  const std::filesystem::path folder = std::filesystem::path(scratch.cache()) / "v1" / "sm_90a" / "ab";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_file_atomically(folder / "no \xff text", "foreign").ok());
  const Outcome outcome = hstujit_tool({"cache", "verify", "--cache-dir", scratch.cache()});
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.out, HasSubstr("it is not a file of the cache"));
  EXPECT_EQ(outcome.err.find("bug"), std::string::npos) << outcome.err;
}

TEST(Cache, AnEmptyOneIsFine) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.cache());
  EXPECT_EQ(hstujit_tool({"cache", "verify", "--cache-dir", scratch.cache()}).code, kDone);
  EXPECT_EQ(hstujit_tool({"cache", "ls", "--cache-dir", scratch.cache()}).out,
            "0 kernels, 0 B; 0 tuning records, 0 choices\n");
}

TEST(Cache, ListFitsAPageAndTellsWhereEntriesAreFrom) {
  const Scratch scratch;
  const std::string layer = (scratch.path() / "layer").string();
  ArtifactInfo info = sample_info();
  info.kernel = std::string(120, 'k');
  ArtifactStore store(CacheDirectories{.user = scratch.cache(), .read_only = {}}, Log());
  ASSERT_TRUE(store.put(sample_key(), cubin_of("mine"), info));
  ArtifactStore others(CacheDirectories{.user = layer, .read_only = {}}, Log());
  ASSERT_TRUE(others.put(sample_key(sample_config(64)), cubin_of("of others"), info));
  TuningDatabase records(CacheDirectories{.user = layer, .read_only = {}}, Log());
  ASSERT_TRUE(records.add(sample_record({{sample_config(64), kWorkload, "s", 10, 1}})).ok());
  const std::vector<std::string> list = {"cache", "ls", "--cache-dir", scratch.cache()};
  const Variables variables = {{"HSTUJIT_CACHE_PATH", layer}};
  const Outcome usual = hstujit_tool(list, variables);
  ASSERT_EQ(usual.code, kDone) << usual.err;
  for (const std::string& line : split(usual.out, '\n')) EXPECT_LE(line.size(), 102u) << line;  // of "…" one column
  EXPECT_THAT(usual.out, HasSubstr("  user\n"));
  EXPECT_THAT(usual.out, HasSubstr("  read_only\n"));
  std::vector<std::string> wide = list;
  wide.emplace_back("--wide");
  const Outcome all = hstujit_tool(wide, variables);
  EXPECT_THAT(all.out, HasSubstr(info.kernel));
  EXPECT_THAT(all.out, HasSubstr("  " + layer + "\n"));
  std::vector<std::string> json = list;
  json.emplace_back("--json");
  const auto report = hstujit_tool(json, variables).json();
  EXPECT_EQ(report["kernels"][0]["role"], "user");
  EXPECT_EQ(report["kernels"][1]["role"], "read_only");
  EXPECT_EQ(report["tuning"][0]["role"], "read_only");
}

TEST(Cache, TheTablesEndWithOneLineOfTotals) {
  const Scratch scratch;
  ArtifactStore store(CacheDirectories{.user = scratch.cache(), .read_only = {}}, Log());
  const std::vector<std::string> list = {"cache", "ls", "--cache-dir", scratch.cache()};
  const Variables no_records = {{"HSTUJIT_CACHE_PATH", ""}};
  EXPECT_EQ(hstujit_tool(list, no_records).out.find('\\'), std::string::npos);
  ASSERT_TRUE(store.put(sample_key(), cubin_of("mine"), sample_info()));
  const Outcome outcome = hstujit_tool(list, no_records);
  EXPECT_EQ(outcome.out.find('\\'), std::string::npos) << outcome.out;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\n\n1 kernel, [^\n]*; [0-9]+ tuning records[^\n]*, 0 choices\n$"));
}

TEST(Cache, ExportKeepsAGoodBundle) {
  const Scratch scratch;
  const std::string good = "\x28\xb5\x2f\xfd a good one", bundle = scratch.file("bundle", good);
  const auto exported = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"cache", "export", bundle, "--cache-dir", scratch.cache()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return hstujit_tool(arguments);
  };
  const Outcome unknown = exported({"--op", "hstu_atention"});
  EXPECT_EQ(unknown.code, kBadRequest);
  EXPECT_THAT(unknown.err,
              HasSubstr("hstujit: --op is \"hstu_atention\", did you mean \"hstu_attention\"?; allowed: "));
  for (const auto& more : {std::vector<std::string>{}, {"--op", "hstu_attention"}}) {
    const Outcome nothing = exported(more);
    EXPECT_EQ(nothing.code, kBadRequest);
    EXPECT_THAT(nothing.err, HasSubstr("the cache has no kernel, no tuning record and no choice"));
  }
  EXPECT_EQ(*whole_file(bundle), good);
}

TEST(Cache, ExportNamesWhatIsLeftOut) {
  const Scratch scratch;
  ArtifactStore store(CacheDirectories{.user = scratch.cache(), .read_only = {}}, Log());
  ASSERT_TRUE(store.put(sample_key(), cubin_of("mine"), sample_info()));
  const ArtifactFiles files(scratch.cache(), sample_key().arch, *artifact_digest(sample_key()));
  std::filesystem::resize_file(files.cubin, 3);
  const std::vector<std::string> arguments = {"cache", "export", (scratch.path() / "bundle").string(), "--cache-dir",
                                              scratch.cache()};
  const Outcome nothing = hstujit_tool(arguments, {{"HSTUJIT_CACHE_PATH", ""}});
  EXPECT_EQ(nothing.code, kBadRequest);
  EXPECT_THAT(nothing.err,
              HasSubstr("; 1 file of it is not used, \"" + files.metadata.string() + "\": the cubin has 3 "));
  ArtifactKey other = sample_key();
  other.direction = "backward";
  ASSERT_TRUE(store.put(other, cubin_of("other"), sample_info()));
  const Outcome one = hstujit_tool(arguments, {{"HSTUJIT_CACHE_PATH", ""}});
  EXPECT_EQ(one.code, 0);
  EXPECT_THAT(one.err,
              testing::ContainsRegex("warning: 1 file of the cache is left out; the first is [^\n]*: the cubin "
                                     "has 3 bytes[^\n]*; hstujit cache verify names all\n"));
}

// The archive is made in the folder for temporary files, and the sentence named the bundle, which nobody had touched.
TEST(Cache, ExportNamesTheTemporaryFileThatHasNoRoom) {
  const Scratch scratch;
  const std::string records = (scratch.path() / "records").string(), bundle = (scratch.path() / "bundle").string();
  TuningDatabase origin(CacheDirectories{.user = records, .read_only = {}}, Log());
  ASSERT_TRUE(origin.add(sample_record({{sample_config(64), kWorkload, "s", 10, 1}})).ok());
  const std::string command =
      "ulimit -f 1; exec " + binary_path("/bin/hstujit cache export ") + bundle + " --cache-dir " + scratch.cache();
  const Outcome full =
      run_program({"bash", "-c", command}, {{"HSTUJIT_CACHE_PATH", records}, {"TMPDIR", scratch.path().string()}});
  EXPECT_EQ(full.code, kFailed);
  EXPECT_THAT(full.err, testing::MatchesRegex("hstujit: cannot write [^\n]*/hstujit-[^\n]*/bundle.tar[^\n]*; it is a "
                                              "temporary file: TMPDIR may name another folder for these\n"));
  EXPECT_FALSE(std::filesystem::exists(bundle));
}

TEST(Outputs, WhatIsNoRegularFileStays) {
  const Scratch scratch;
  const std::string pipe = (scratch.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string config = scratch.config();
  const std::vector<std::vector<std::string>> commands = {
      {"freeze", "--config", config, "--arch", "sm_90a", "-o", pipe},
      {"bench", "--config", config, "--out", pipe},
      {"cache", "export", pipe}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--cache-dir", scratch.cache()});
    // Standard output is a pipe here.
    std::vector<std::string> piped = {"/bin/sh", "-c", R"(("$0" "$@"; echo "exit $?" >&2) | cat)",
                                      binary_path("/bin/hstujit")};
    piped.insert(piped.end(), command.begin(), command.end());
    const Outcome refused = run_program(piped);
    EXPECT_THAT(refused.err, HasSubstr("it is a pipe, no regular file")) << testing::PrintToString(command);
    EXPECT_THAT(refused.err, HasSubstr("exit 2")) << testing::PrintToString(command);
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

// By whatever name: the file that is read would be gone.
TEST(Outputs, WhatTheCommandReadsIsNotReplaced) {
  const Scratch scratch;
  const std::string link = (scratch.path() / "link").string(), lengths = scratch.file("lengths.txt", "8\n");
  const std::string own = scratch.file("own.json", "{}"), device = scratch.file("device.json", "{}");
  const std::string grid = scratch.file("grid.json", "[]"), bundle = scratch.file("bundle", "a bundle");
  const std::string config =
      scratch.file("config.json", R"({"device": "own.json", "ops": [{"lengths": {"file": "lengths.txt"}}]})");
  std::filesystem::create_symlink(config, link);
  using Arguments = std::vector<std::string>;
  const std::tuple<std::string, Arguments, std::string> cases[] = {
      {config, {"freeze", "--config", link, "--arch", "sm_90a", "-o"}, "--config"},
      {link, {"freeze", "--config", config, "--arch", "sm_90a", "-o"}, "--config"},
      {lengths, {"freeze", "--config", config, "--arch", "sm_90a", "-o"}, "the lengths of --config"},
      {own, {"freeze", "--config", config, "-o"}, "the device of --config"},
      {device, {"freeze", "--config", config, "--arch", device, "-o"}, "--arch"},
      {config, {"bench", "--config", config, "--out"}, "--config"},
      {grid, {"bench", "--grid", grid, "--out"}, "--grid"},
      {bundle, {"cache", "export"}, "HSTUJIT_CACHE_PATH"},
  };
  for (auto [output, command, name] : cases) {
    const std::string before = *whole_file(output);
    command.insert(command.end(), {output, "--cache-dir", scratch.cache()});
    const Outcome refused = hstujit_tool(command, {{"HSTUJIT_CACHE_PATH", scratch.cache() + ":" + bundle}});
    EXPECT_EQ(refused.code, kBadRequest) << testing::PrintToString(command);
    EXPECT_THAT(refused.err,
                HasSubstr("cannot write \"" + output + "\": it is the file of " + name + ", which would be lost"));
    EXPECT_EQ(*whole_file(output), before);
  }
}

// Where a file is, too, which a new one would take the place of.
TEST(Outputs, WhatAProcessHasOpenIsNoPlaceForAFile) {
  const Scratch scratch;
  const std::string file = (scratch.path() / "out").string(), link = (scratch.path() / "link").string();
  std::filesystem::create_symlink("/dev/stdout", link);
  for (const std::string& output :
       {std::string("/dev/stdout"), std::string("/proc/self/fd/1"), std::string("/dev/fd/1"), link}) {
    for (const char* to : {"", " | cat"}) {
      const std::string script = std::string(R"((echo before; "$0" freeze --config "$1" --arch sm_90a -o "$2"; )") +
                                 R"(echo "exit $?" >&2; echo after) )" + (*to == '\0' ? R"(>"$3")" : to);
      const Outcome refused =
          run_program({"/bin/sh", "-c", script, binary_path("/bin/hstujit"), scratch.config(), output, file});
      EXPECT_THAT(refused.err, HasSubstr("cannot write \"" + output + "\": it refers to an open file of a process"));
      EXPECT_THAT(refused.err, HasSubstr("exit 2"));
      if (*to == '\0') {
        EXPECT_EQ(*whole_file(file), "before\nafter\n");
      }
    }
  }
}

TEST(Cache, ABundleIsExportedImportedAndALayer) {
  const Scratch scratch;
  const std::string bundle = (scratch.path() / "bundle.tar.zst").string();
  const std::string again = (scratch.path() / "again.tar.zst").string();
  const std::string records = (scratch.path() / "records").string();
  TuningDatabase origin(CacheDirectories{.user = records, .read_only = {}}, Log());
  ASSERT_TRUE(origin.add(sample_record({{sample_config(64), kWorkload, "s", 10, 1}})).ok());
  const Outcome exported =
      hstujit_tool({"cache", "export", bundle, "--cache-dir", scratch.cache()}, {{"HSTUJIT_CACHE_PATH", records}});
  ASSERT_EQ(exported.code, kDone) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("exported: 0 kernels, 1 tuning record, 0 choices; "));
  EXPECT_THAT(exported.err, HasSubstr("hstujit: warning: no kernel is exported; "));
  const Outcome imported = hstujit_tool({"cache", "import", bundle, "--cache-dir", scratch.cache(), "--json"});
  ASSERT_EQ(imported.code, kDone) << imported.err;
  EXPECT_EQ(imported.json()["new_tuning"], 1);
  ASSERT_EQ(hstujit_tool({"cache", "export", again, "--cache-dir", scratch.cache()}).code, kDone);
  EXPECT_EQ(*whole_file(again), *whole_file(bundle)) << "the same entries give the same bytes";

  const std::string empty = (scratch.path() / "empty").string();
  const Variables layer = {{"HSTUJIT_CACHE_PATH", bundle}};
  const auto listed = hstujit_tool({"cache", "ls", "--cache-dir", empty, "--json"}, layer).json();
  EXPECT_EQ(listed["tuning"].size(), 1u);
  EXPECT_EQ(hstujit_tool({"cache", "verify", "--cache-dir", empty}, layer).code, kDone);

  std::filesystem::resize_file(bundle, std::filesystem::file_size(bundle) / 2);
  const Outcome refused = hstujit_tool({"cache", "import", bundle, "--cache-dir", empty});
  EXPECT_EQ(refused.code, kBadRequest);
  EXPECT_THAT(refused.err, HasSubstr(bundle + " is no whole bundle"));
  EXPECT_FALSE(std::filesystem::exists(empty));
  EXPECT_EQ(hstujit_tool({"cache", "verify", "--cache-dir", empty}, layer).code, kFailed);
}

// The directory's own findings stay, and what has no room beside them is said.
TEST(Cache, AnImportSaysWhatItLeavesOut) {
  const Scratch scratch;
  const TuningRecord one = sample_record({{sample_config(64), kWorkload, "s", 10, 1}});
  TuningRecord full = one;
  full.rejected.assign(kMaxRecordFindings - 1, {});
  for (size_t i = 0; i < full.rejected.size(); ++i) {
    full.rejected[i] = {sample_config(1000 + static_cast<int>(i)), "s", "crashed", ""};
  }
  ASSERT_TRUE(TuningDatabase(CacheDirectories{.user = scratch.cache(), .read_only = {}}, Log()).add(full).ok());
  TuningRecord other = one;
  other.timed[0].config = sample_config(128);
  const std::string bundle = (scratch.path() / "bundle.tar").string();
  const std::string name = record_file(kNoRoot, tuning_digest(one.key)).native();
  ASSERT_TRUE(write_file_atomically(bundle, pack_bundle({{name, *format_record(other)}})->bytes).ok());
  const Outcome imported = hstujit_tool({"cache", "import", bundle, "--cache-dir", scratch.cache()});
  EXPECT_EQ(imported.code, kDone) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("1 tuning record, 0 new, 0 changed"));
  EXPECT_THAT(imported.err, HasSubstr("hstujit: warning: 1 finding of the bundle is left out"));
}

}  // namespace
}  // namespace hstujit
