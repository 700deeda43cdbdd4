#include "tools/hstujit/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/support/env.h"
#include "tools/hstujit/exit_code.h"

namespace hstujit {

namespace {

// Text that man(7) shows as it is.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string options_text(const Command& command) {
  std::string text;
  for (const CommandOption& option : command.options) {
    const std::string value = option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(option.value));
    const std::string names = fmt::format("\\fB{}\\fR", roff(fmt::format("{}", fmt::join(option.names, ", "))));
    text += fmt::format(".TP\n{}{}\n{}{}\n", option.names.empty() ? "" : names, value, roff(option.doc),
                        option.required ? "; required" : "");
  }
  return text;
}

std::string commands_text(const Command& command, const std::string& path) {
  std::string text;
  for (const Command& below : command.commands) {
    const std::string name = path + " " + below.name;
    text += fmt::format(".SS {}\n{}.\n", roff(name), roff(below.doc));
    text += options_text(below) + commands_text(below, name);
  }
  return text;
}

// The table's texts are Markdown: marks of code are left out.
std::string environment_text() {
  std::string text;
  for (const EnvVariable& variable : environment_variables()) {
    std::string doc(variable.doc);
    std::erase(doc, '`');
    if (doc.ends_with('.')) doc.pop_back();
    if (!variable.allowed.empty()) {
      std::string allowed(variable.allowed);
      std::replace(allowed.begin(), allowed.end(), '|', ' ');
      const char* const what = variable.kind == EnvKind::kChoices  ? "some of, separated by commas:"
                               : variable.kind == EnvKind::kNumber ? "a whole number up to"
                                                                   : "one of:";
      doc += fmt::format("; {} {}", what, allowed);
    }
    if (variable.kind == EnvKind::kPaths) doc += "; separated by :";
    if (!variable.fallback.empty()) doc += fmt::format("; default: {}", variable.fallback);
    text += fmt::format(".TP\n.B {}\n{}\n", variable.name, roff(doc));
  }
  return text;
}

}  // namespace

std::string manual_page(const Command& program, std::string_view version) {
  std::string text = fmt::format(
      ".TH {} 1 \"\" \"hstu\\-jit {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n"
      ".SH SYNOPSIS\n.B {}\n\\fICOMMAND\\fR [\\fIoptions\\fR]\n.SH OPTIONS\n",
      upper(program.name), version, program.name, roff(program.doc), program.name);
  text += options_text(program) + ".SH COMMANDS\n" + commands_text(program, program.name) + ".SH EXIT STATUS\n";
  for (const ExitCode code : {ExitCode::kDone, ExitCode::kFailed, ExitCode::kBadRequest, ExitCode::kUnavailable}) {
    text += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(code), roff(meaning(code)));
  }
  return text + ".SH ENVIRONMENT\n" + environment_text();
}

}  // namespace hstujit
