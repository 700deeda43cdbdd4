// The text of --help: CLI11's, in lines of at most kHelpColumns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace hstujit {

inline constexpr size_t kHelpColumns = 100;

class HelpFormatter final : public CLI::Formatter {
 public:
  // " FILE REQUIRED": what a value may be, and what it is by default, is said behind the description.
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  // In lines that have room beside the names of options.
  std::string wrapped(const std::string& text) const;
};

}  // namespace hstujit
