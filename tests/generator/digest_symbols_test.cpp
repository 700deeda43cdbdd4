// The digests follow includes, and a header may declare what any file defines. Here the symbols of the object files say
// what is really used: where a file of a digest refers to something that is defined outside of it, a cubin could be
// served that another source would make.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/support/files.h"
#include "tests/paths.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = size_t{64} << 20;

// Symbols that files of a digest may refer to although they are defined outside: parts of the mangled names and of the
// path.
struct Allowed {
  std::string_view symbol, path;
  std::string_view reason;
};
constexpr Allowed kAllowed[] = {
    {"", "generated", "the tables of operators and skeletons, which have digests of their own"},
    {"estimate", "cost.cpp", "an estimate is not part of a source"},
    {"per_sequence_costs", "cost.cpp", "constants of an estimate"},
    {"AttentionSpec4work", "/work.cpp", "of the virtual table"},
    {"Lengths10total_rows", "compiler/spec/lengths.cpp", "sizes of a call, of which no source has any"},
    {"Lengths7rows_of", "compiler/spec/lengths.cpp", "the same"},
    {"find_skeleton", "compiler/plan/registry.cpp", "by name; the skeleton itself is the digest's"},
    {"capability", "/device_spec.cpp", "of the arch, which the key has"},
    {"to_text", "expression/text.cpp", "of a mask, which the key has"},
    {"meant_", "/aliases.cpp", "messages"},
    {"is_launch_argument", "/aliases.cpp", "the same"},
    {"is_tunable", "/aliases.cpp", "the same"},
    {"join_path", "/json_place.cpp", "messages"},
    {"Mistakes", "/mistakes.cpp", "messages"},
    {"", "compiler/support/", "errors, suggestions, files and JSON that is read"},
};

std::vector<std::string> lines_of(const std::string& path) {
  const auto text = read_file(path, kMaxBytes);
  EXPECT_TRUE(text.ok()) << text.status().message();
  std::vector<std::string> lines;
  std::istringstream stream(text.ok() ? *text : "");
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

// ".../compiler/spec/CMakeFiles/hstujit_spec.dir/types.cpp.o" is of "compiler/spec/types.cpp".
std::string source_of(const std::string& object) {
  const std::string folder = fs::path(object).lexically_relative(binary_path()).lexically_normal();
  const size_t files = folder.find("CMakeFiles/"), inside = folder.find(".dir/");
  if (files == std::string::npos || inside == std::string::npos) return "generated";
  const std::string name = folder.substr(inside + std::string_view(".dir/").size());
  const std::string source = fs::path(folder.substr(0, files) + name).replace_extension().lexically_normal();
  return fs::exists(fs::path(source_path()) / source) ? source : "generated";
}

struct Symbols {
  std::map<std::string, std::string> definitions;          // symbol to source
  std::map<std::string, std::set<std::string>> undefined;  // source to symbols
};

Symbols read_symbols() {
  Symbols symbols;
  FILE* const pipe = ::popen(HSTUJIT_NM " -A -P @" HSTUJIT_OBJECTS, "r");
  EXPECT_NE(pipe, nullptr);
  if (pipe == nullptr) return symbols;
  std::string text;
  char buffer[65536];
  for (size_t size; (size = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, size);
  EXPECT_EQ(::pclose(pipe), 0);
  std::istringstream stream(text);
  std::string object, source;
  for (std::string line; std::getline(stream, line);) {  // "/path/types.cpp.o: symbol T 0 12"
    const size_t end = line.find(": ");
    if (line.substr(0, end) != object) {
      object = line.substr(0, end);
      source = source_of(object);
    }
    std::istringstream fields(line.substr(end + 2));
    std::string name, type;
    fields >> name >> type;
    if (type == "U") symbols.undefined[source].insert(name);
    // Not those that every file that uses them has itself.
    if (type == "T" || type == "D" || type == "B" || type == "R") symbols.definitions.emplace(name, source);
  }
  return symbols;
}

TEST(DigestSymbols, WhatTheFilesOfADigestReferToIsInIt) {
  std::map<std::string, std::set<std::string>> digests;  // "skeleton attention/sm90_forward/kernel.cuh" to files
  for (const std::string& line : lines_of(HSTUJIT_DIGEST_FILES)) {
    const size_t place = line.rfind(' ');
    digests[line.substr(0, place)].insert(line.substr(place + 1));
  }
  ASSERT_GE(digests.size(), 2U);
  const Symbols symbols = read_symbols();
  ASSERT_GT(symbols.definitions.size(), 100U);
  std::set<const Allowed*> used;
  for (const auto& [digest, files] : digests) {
    size_t seen = 0;
    for (const std::string& file : files) {
      const auto undefined = symbols.undefined.find(file);
      if (undefined == symbols.undefined.end()) continue;
      ++seen;
      for (const std::string& symbol : undefined->second) {
        const auto definition = symbols.definitions.find(symbol);
        if (definition == symbols.definitions.end() || files.contains(definition->second)) continue;
        bool allowed = false;
        for (const Allowed& rule : kAllowed) {
          if (symbol.find(rule.symbol) == std::string::npos) continue;
          if (definition->second.find(rule.path) == std::string::npos) continue;
          used.insert(&rule);
          allowed = true;
        }
        EXPECT_TRUE(allowed) << "the digest of " << digest << " has " << file << ", which refers to " << symbol
                             << " of " << definition->second << "; that is not in the digest";
      }
    }
    EXPECT_GT(seen, 0U) << "no object file of " << digest << " was looked at";
  }
  for (const Allowed& rule : kAllowed) {
    EXPECT_TRUE(used.contains(&rule)) << rule.symbol << " of " << rule.path << " is used by none: " << rule.reason;
  }
}

}  // namespace
}  // namespace hstujit
