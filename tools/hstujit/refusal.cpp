#include "tools/hstujit/refusal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "compiler/support/suggest.h"
#include "compiler/support/text.h"
#include "tools/hstujit/command_table.h"
#include "tools/hstujit/output.h"

namespace hstujit {

namespace {

constexpr const char* kEmpty = "is empty; leave it out, or give it a value";

// The innermost command that was named.
const CLI::App& named_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : named_command(*chosen.front());
}

std::string suggestion(const std::string& wrong, const std::vector<std::string>& names) {
  return did_you_mean(closest(wrong, {names.begin(), names.end()}));
}

// The names of options are compared without their dashes, which all of them have.
std::string option_suggestion(std::string_view wrong, const std::vector<std::string>& names) {
  const auto bare = [](std::string_view name) {
    return name.substr(std::min(name.find_first_not_of('-'), name.size()));
  };
  std::vector<std::string_view> begun, all;
  for (const std::string_view name : names) {
    if (name.starts_with(wrong)) begun.push_back(name);
    if (bare(name).size() > 1) all.push_back(bare(name));
  }
  if (!begun.empty()) return did_you_mean(closest(wrong, begun));
  const std::string_view near = closest(bare(wrong), all);
  return near.empty() ? std::string() : did_you_mean(fmt::format("--{}", near));
}

// Finds the option that other programs call by this name, with a value where that is meant. Of several, the first that
// the command has; empty where it has none.
std::string_view option_elsewhere(std::string_view wrong, const std::vector<std::string>& names) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {{"--gpu", "--device"},
                                                                      {"--gpu", "--devices"},
                                                                      {"--gpu", "--arch"},
                                                                      {"--gpus", "--devices"},
                                                                      {"--device", "--devices"},
                                                                      {"--device", "--arch"},
                                                                      {"--target", "--arch"},
                                                                      {"--sm", "--arch"},
                                                                      {"--compute-capability", "--arch"},
                                                                      {"--cpu", "--backend host"},
                                                                      {"--host", "--backend host"},
                                                                      {"--cuda", "--backend cuda"},
                                                                      {"--time", "--budget"},
                                                                      {"--timeout", "--budget"},
                                                                      {"--seconds", "--budget"},
                                                                      {"--file", "--config"},
                                                                      {"--input", "--config"},
                                                                      {"--model", "--config"},
                                                                      {"--out-dir", "--output"},
                                                                      {"--dir", "--output"},
                                                                      {"--directory", "--output"},
                                                                      {"--folder", "--output"},
                                                                      {"--out-dir", "--out"},
                                                                      {"--output-dir", "--output"},
                                                                      {"--out", "--output"},
                                                                      {"--output", "--out"},
                                                                      {"--verify", "--check"},
                                                                      {"--validate", "--check"},
                                                                      {"--test", "--check"},
                                                                      {"--dry-run", "--check"},
                                                                      {"--iters", "--repeats"},
                                                                      {"--iterations", "--repeats"},
                                                                      {"--runs", "--repeats"},
                                                                      {"--threads", "--jobs"},
                                                                      {"--parallel", "--jobs"},
                                                                      {"--workers", "--jobs"},
                                                                      {"--cache", "--cache-dir"},
                                                                      {"--name", "--op"},
                                                                      {"--operator", "--op"},
                                                                      {"--instance", "--op"},
                                                                      {"--kernel", "--op"},
                                                                      {"--rows", "--max-rows"},
                                                                      {"--rank", "--shard"},
                                                                      {"--full", "--wide"},
                                                                      {"--format", "--json"},
                                                                      {"--size", "--max-bytes"},
                                                                      {"--recording", "--from"},
                                                                      {"--random-seed", "--seed"}};
  for (const auto& [other, name] : kWords) {
    const std::string_view option = name.substr(0, name.find(' '));
    if (wrong == other && std::find(names.begin(), names.end(), option) != names.end()) return name;
  }
  return {};
}

// Finds the command that other programs call by this name; empty where there is none.
std::string_view known_elsewhere(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"list", "ls"},         {"rm", "prune"},        {"clean", "prune"},    {"clear", "prune"},
      {"check", "verify"},    {"pack", "export"},     {"unpack", "import"},  {"validate", "check"},
      {"lint", "check"},      {"compile", "prewarm"}, {"warmup", "prewarm"}, {"autotune", "tune"},
      {"benchmark", "bench"}, {"man", "manual"},      {"info", "doctor"},    {"completions", "completion"}};
  for (const auto& [other, name] : kWords) {
    if (word == other && std::find(names.begin(), names.end(), name) != names.end()) return name;
  }
  return {};
}

// A word that is no command of `table`, which has those `names`: an option's, one of a command's own commands, or what
// others call one of all these. Empty where it is none.
std::string meant_command(const Command& table, const std::vector<std::string>& names, std::string_view word) {
  for (const CommandOption& option : table.options) {
    for (const std::string& name : option.names) {
      if (name == fmt::format("--{}", word)) return name;
    }
  }
  if (const std::string_view known = known_elsewhere(word, names); !known.empty()) return std::string(known);
  for (const Command& command : table.commands) {
    std::vector<std::string> inner;
    for (const Command& known : command.commands) inner.push_back(known.name);
    const bool same = std::find(inner.begin(), inner.end(), word) != inner.end();
    const std::string_view known = same ? word : known_elsewhere(word, inner);
    if (!known.empty()) return fmt::format("{} {}", command.name, known);
  }
  return {};
}

// CLI11 says only that a command is missing when a wrong one was given, and lists what is left over in no order.
std::string about_the_rest(const CLI::App& command, const std::vector<std::string>& rest) {
  const Command table = command_table(command);
  const auto is_option = [](const auto& text) { return text.starts_with('-'); };
  const auto option = std::find_if(rest.begin(), rest.end(), is_option);
  // A command that there is not is said first: the options behind it are those of the one that was meant.
  const auto word = std::find_if_not(rest.begin(), rest.end(), is_option);
  const bool of_wrong_command =
      !table.commands.empty() && word != rest.end() && (option == rest.end() || word < option);
  if (option != rest.end() && !of_wrong_command) {
    const std::string name = option->substr(0, option->find('='));
    std::vector<std::string> names;
    for (const CommandOption& known : table.options) names.insert(names.end(), known.names.begin(), known.names.end());
    const bool letter = name.size() <= 2;  // any other is as close
    const std::string_view meant = option_elsewhere(name, names);
    return fmt::format("unknown option {}{}", name,
                       letter           ? ""
                       : !meant.empty() ? did_you_mean(meant)
                                        : option_suggestion(name, names));
  }
  if (table.commands.empty()) {
    const CLI::Option* const config = command.get_option_no_throw("--config");
    const bool is_config = config != nullptr && config->count() == 0;
    return fmt::format("unexpected argument \"{}\"{}", rest.front(), is_config ? "; use --config FILE" : "");
  }
  std::vector<std::string> names;
  for (const Command& known : table.commands) names.push_back(known.name);
  const std::string meant = meant_command(table, names, rest.front());
  return fmt::format("unknown command \"{}\"{}; commands: {}", rest.front(),
                     meant.empty() ? suggestion(rest.front(), names) : did_you_mean(meant), fmt::join(names, ", "));
}

constexpr std::string_view kBeforeCommand = "{} comes before the command; its options come after it";

// Where words that CLI11 leaves to the commands above the innermost one stand.
std::string about_words_elsewhere(const std::string& words, std::span<const char* const> arguments) {
  const auto dashes = std::ranges::find(arguments, std::string_view("--"));
  if (dashes != arguments.end() && words == fmt::format("{}", fmt::join(std::next(dashes), arguments.end(), " ")))
    return fmt::format("{} comes after --, where options end", words);
  if (words == "help") return "unknown command \"help\"; commands have --help";
  return fmt::format(kBeforeCommand, words);
}

// Names an argument that a command above the innermost one was given: it is neither an option of that nor a command.
std::string before_the_command(const CLI::App& command) {
  for (const CLI::App* above = command.get_parent(); above != nullptr; above = above->get_parent()) {
    const std::vector<std::string> rest = above->remaining();
    if (!rest.empty()) return fmt::format("{}", fmt::join(rest, " "));
  }
  return {};
}

// "a FILE" "an ARCH" "an N", or the words that there are.
std::string value_text(const CLI::Option& option) {
  const std::string name = value_of(option).name;
  if (name.find('|') != std::string::npos) return fmt::format("one of {}", fmt::join(split(name, '|'), ", "));
  const bool vowel = name == "N" || std::string_view("AEIOU").find(name.front()) != std::string_view::npos;
  return fmt::format("{} {}", vowel ? "an" : "a", name);
}

std::string all_names(const CLI::Option& option) {
  return option.get_positional() ? option.get_name() : option.get_name(false, true);
}

// An option that was given the name of another one for its value: CLI11 takes whatever stands behind it.
const CLI::Option* without_its_value(const CLI::App& command) {
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& text : option->results()) {
      if (text.starts_with('-') && command.get_option_no_throw(text) != nullptr) return option;
    }
  }
  return nullptr;
}

// Describes an option that is missing, or whose value is; empty where the sentence is about something else.
std::string about_what_is_missing(const CLI::App& command, const std::string& sentence) {
  constexpr std::string_view kNoOption = " is required", kNoValue = " missing";
  const CLI::Option* const without = without_its_value(command);
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name();
    if (sentence == name + std::string(kNoOption)) {
      const bool listed = value_of(*option).name.find('|') != std::string::npos;
      return fmt::format("{}{}{}", all_names(*option), kNoOption, listed ? ": " + value_text(*option) : "");
    }
    if (option == without || (sentence.starts_with(name + ": ") && sentence.ends_with(kNoValue)))
      return fmt::format("{} needs {}", all_names(*option), value_text(*option));
  }
  return {};
}

// Words an error of CLI11, by the form of its sentence where it keeps no more than that.
std::string in_our_words(const CLI::App& command, const CLI::ParseError& error) {
  const std::string sentence = error.what();
  if (std::string missing = about_what_is_missing(command, sentence); !missing.empty()) return missing;
  constexpr std::string_view kValueOfAFlag = " was given a disallowed flag override", kTwice = ": At Most 1 required";
  constexpr std::string_view kUnexpected = "The following argument";
  if (sentence.ends_with(kValueOfAFlag))
    return fmt::format("--{} takes no value", sentence.substr(0, sentence.size() - kValueOfAFlag.size()));
  if (const size_t end = sentence.find(kTwice); end != std::string::npos)
    return fmt::format("{} is given more than once", sentence.substr(0, end));
  // The innermost command has nothing left over, so what is stands before it.
  if (const size_t colon = sentence.find(": "); sentence.starts_with(kUnexpected) && colon != std::string::npos)
    return fmt::format(kBeforeCommand, sentence.substr(colon + 2));
  return sentence;
}

}  // namespace

void refuse_values_of_flags(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](CLI::Option* any) { return any->get_items_expected_max() == 0; }))
    option->disable_flag_override();
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) refuse_values_of_flags(*command);
}

void check_given_values(const CLI::App& app) {
  const CLI::App& command = named_command(app);
  if (const CLI::Option* const option = without_its_value(command))
    throw CLI::ArgumentMismatch::TypedAtLeast(option->get_name(), 1, value_of(*option).name);
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& results = option->results();
    if (std::any_of(results.begin(), results.end(), [](const std::string& text) { return text.empty(); }))
      throw CLI::ValidationError(option->get_name(),
                                 option->get_required() ? "is empty; it must have a value" : kEmpty);
  }
}

void check_not_cut_off(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (text.starts_with("--") && text.find('=') == text.size() - 1)
      throw CLI::ValidationError(std::string(text.substr(0, text.size() - 1)), kEmpty);
  }
}

ExitCode refuse(const CLI::App& app, const CLI::ParseError& error, std::span<const char* const> arguments) {
  const CLI::App& command = named_command(app);
  const std::vector<std::string> rest = command.remaining();
  // The help of a command that there is not is no help.
  const bool unknown_command =
      !rest.empty() && !rest.front().starts_with('-') && !command_table(command).commands.empty();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success) && !unknown_command) {  // --help, --version
    std::ostringstream text;
    app.exit(error, text, text);
    write_text(stdout, text.str());
    return ExitCode::kDone;
  }
  const bool of_a_value = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ValidationError);
  if (rest.empty() && !of_a_value && !command_table(command).commands.empty()) {
    write_text(stderr, app.help());  // a command is missing: those there are say more than that
    return ExitCode::kBadRequest;
  }
  const std::string before = before_the_command(command);
  const bool without_value = without_its_value(command) != nullptr;
  std::string sentence = !before.empty()                 ? about_words_elsewhere(before, arguments)
                         : rest.empty() || without_value ? in_our_words(command, error)
                                                         : about_the_rest(command, rest);
  std::string path;
  for (const CLI::App* part = &command; part->get_parent() != nullptr; part = part->get_parent()) {
    path = part->get_name() + " " + path;
  }
  print_error(format_printable("{}; see hstujit {}--help", sentence, path));
  return ExitCode::kBadRequest;
}

}  // namespace hstujit
