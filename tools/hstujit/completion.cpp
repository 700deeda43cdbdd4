#include "tools/hstujit/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <vector>

namespace hstujit {

namespace {

// Calls visit(path, command) for the program ("") and each command below it ("cache", "cache ls").
void for_each_command(const Command& command, const std::string& path,
                      const std::function<void(const std::string&, const Command&)>& visit) {
  visit(path, command);
  for (const Command& below : command.commands) {
    for_each_command(below, path.empty() ? below.name : path + " " + below.name, visit);
  }
}

// In single quotes of a shell.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

bool is_placed(const CommandOption& option) { return option.names.empty(); }

// Completions of an option's value, as a shell's call: `files`, `folders`, or `words` of the choices.
struct Calls {
  std::string files;
  std::string folders;
  std::string words;  // with {} for them
  std::string nothing;
};

std::string call_for(const CommandOption& option, const Calls& calls) {
  if (!option.choices.empty()) return fmt::format(fmt::runtime(calls.words), fmt::join(option.choices, " "));
  if (option.value == "DIR") return calls.folders;
  // Other values, such as architectures, may be files, too.
  const bool file = option.value == "FILE" || option.value == "RECORDING" || option.value == "ARCH";
  return file ? calls.files : calls.nothing;
}

// `case` branches by command and the word before the cursor: the values of options.
std::string value_branches(const Command& program, const Calls& calls, const char* open) {
  std::string text;
  for_each_command(program, "", [&](const std::string& path, const Command& command) {
    for (const CommandOption& option : command.options) {
      if (option.value.empty() || is_placed(option)) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(fmt::format("\"{} {}\"", path, name));
      text += fmt::format("    {}{}) {}; return ;;\n", open, fmt::join(patterns, " | "), call_for(option, calls));
    }
  });
  return text;
}

// The patterns of command and next word that name a command.
std::string command_patterns(const Command& program) {
  std::vector<std::string> patterns;
  for_each_command(program, "", [&](const std::string& path, const Command& command) {
    for (const Command& below : command.commands) patterns.push_back(fmt::format("\"{} {}\"", path, below.name));
  });
  return fmt::format("{}", fmt::join(patterns, " | "));
}

std::vector<std::string> option_names(const Command& command) {
  std::vector<std::string> names;
  for (const CommandOption& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

}  // namespace

std::string bash_completion(const Command& program) {
  const Calls calls = {"compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\")",
                       "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$word\")",
                       "mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$word\")", ":"};
  std::string text = fmt::format(
      R"(# bash completion for {0}, written by `{0} completion bash`.
_{0}() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD - 1]}}" command="" words="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${{COMP_WORDS[i]}}" in
    {1}) command="${{command:+$command }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command $before" in
{2}  esac
  case "$command" in
)",
      program.name, command_patterns(program), value_branches(program, calls, ""));
  for_each_command(program, "", [&](const std::string& path, const Command& command) {
    std::vector<std::string> words;
    for (const Command& below : command.commands) words.push_back(below.name);
    std::string files;
    for (const CommandOption& option : command.options) {
      words.insert(words.end(), option.choices.begin(),
                   is_placed(option) ? option.choices.end() : option.choices.begin());
      if (is_placed(option) && option.choices.empty())
        files = "[[ $word == -* ]] || { " + calls.files + "; return; }; ";
    }
    for (const std::string& name : option_names(command)) words.push_back(name);
    text += fmt::format("    \"{}\") {}words=\"{}\" ;;\n", path, files, fmt::join(words, " "));
  });
  return text + fmt::format(
                    "  esac\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}}\n"
                    "complete -F _{0} {0}\n",
                    program.name);
}

std::string fish_completion(const Command& program) {
  std::string text =
      fmt::format("# fish completion for {0}, written by `{0} completion fish`.\ncomplete -c {0} -f\n", program.name);
  for_each_command(program, "", [&](const std::string& path, const Command& command) {
    std::vector<std::string> conditions;
    for (size_t begin = 0; begin < path.size(); begin = std::min(path.size(), path.find(' ', begin)) + 1) {
      const size_t end = std::min(path.size(), path.find(' ', begin));
      conditions.push_back("__fish_seen_subcommand_from " + path.substr(begin, end - begin));
    }
    std::vector<std::string> names;
    for (const Command& below : command.commands) names.push_back(below.name);
    if (!names.empty()) {
      conditions.push_back(fmt::format("not __fish_seen_subcommand_from {}", fmt::join(names, " ")));
    }
    const std::string line = fmt::format("complete -c {} -n {}", program.name,
                                         shell_quoted(fmt::format("{}", fmt::join(conditions, "; and "))));
    for (const Command& below : command.commands) {
      text += fmt::format("{} -a {} -d {}\n", line, below.name, shell_quoted(below.doc));
    }
    for (const CommandOption& option : command.options) {
      const std::string value =
          !option.choices.empty()
              ? fmt::format(" -a {}", shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))))
              : call_for(option, {" -F", " -a '(__fish_complete_directories)'", "", ""});
      std::string names_of;
      for (const std::string& name : option.names) {
        names_of += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      const char* takes = option.value.empty() || is_placed(option) ? "" : " -x";
      text += fmt::format("{}{}{}{} -d {}\n", line, names_of, value == " -F" ? " -r" : takes, value,
                          shell_quoted(option.doc));
    }
  });
  return text;
}

std::string zsh_completion(const Command& program) {
  const Calls calls = {"_files", "_files -/", "compadd -- {}", ":"};
  std::string text = fmt::format(
      R"(#compdef {0}
# zsh completion for {0}, written by `{0} completion zsh`.
_{0}() {{
  local command="" i
  local -a choices
  for ((i = 2; i < CURRENT; i++)); do
    case "$command $words[i]" in
    ({1}) command="${{command:+$command }}$words[i]" ;;
    esac
  done
  case "$command $words[CURRENT-1]" in
{2}  esac
  case "$command" in
)",
      program.name, command_patterns(program), value_branches(program, calls, "("));
  for_each_command(program, "", [&](const std::string& path, const Command& command) {
    std::string rows;
    std::string values;
    const auto add = [&rows](const std::string& name, const std::string& doc) {
      rows += fmt::format("      {}\n", shell_quoted(name + ":" + doc));
    };
    for (const Command& below : command.commands) add(below.name, below.doc);
    for (const CommandOption& option : command.options) {
      for (const std::string& name : option.names) add(name, option.doc);
      if (is_placed(option)) values = call_for(option, calls);
    }
    text += fmt::format("    ({}) {}choices=(\n{}    ) ;;\n", shell_quoted(path), values.empty() ? "" : values + "; ",
                        rows);
  });
  return text + fmt::format("  esac\n  _describe {0} choices\n}}\n_{0} \"$@\"\n", program.name);
}

}  // namespace hstujit
