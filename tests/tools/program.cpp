#include "tests/tools/program.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "tests/paths.h"

extern char** environ;

namespace hstujit {

namespace {

constexpr int kCannotExecute = 127;
constexpr unsigned kNobody = 65534;

std::vector<std::string> environment_with(const Variables& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (!name.starts_with("HSTUJIT_") && !variables.contains(name)) environment.push_back(text);
  }
  // Not the cache of whoever runs the tests, nor the folder that the Python package's tests fill.
  if (const std::string objects = kept_path("/host/tools");
      !objects.empty() && !variables.contains("HSTUJIT_HOST_CACHE"))
    environment.push_back("HSTUJIT_HOST_CACHE=" + objects);
  for (const auto& [name, value] : variables) {
    if (!value.empty()) environment.push_back(name + "=" + value);
  }
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

std::string text_of_file(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char buffer[4096];
  for (size_t size = std::fread(buffer, 1, sizeof(buffer), file); size > 0;
       size = std::fread(buffer, 1, sizeof(buffer), file)) {
    text.append(buffer, size);
  }
  std::fclose(file);
  return text;
}

}  // namespace

std::string Outcome::last_line() const {
  std::string text = out;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

Outcome run_program(const std::vector<std::string>& command, const Variables& variables, bool unprivileged) {
  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = environment_with(variables);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  std::FILE* const out = std::tmpfile();
  std::FILE* const err = std::tmpfile();
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    // Permissions mean nothing to root.
    if (unprivileged && geteuid() == 0 &&
        (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
      _exit(kCannotExecute);
    }
    execvpe(argv[0], argv.data(), envp.data());
    _exit(kCannotExecute);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = text_of_file(out);
  outcome.err = text_of_file(err);
  return outcome;
}

Outcome hstujit_tool(std::vector<std::string> arguments, const Variables& variables, bool unprivileged) {
  arguments.insert(arguments.begin(), binary_path("/bin/hstujit"));
  return run_program(arguments, variables, unprivileged);
}

Scratch::Scratch() : folder_(TempDir::create().value()) {}

std::string Scratch::file(const std::string& name, const std::string& text) const {
  const std::filesystem::path path = folder_.path() / name;
  std::ofstream(path) << text;
  return path.string();
}

std::string Scratch::config(const std::string& fields) const {
  return file("config.json", R"({"version": 1, "ops": [{"name": "small", "op": "hstu_attention", "heads": 2,
    "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64, "lengths": [20, 0, 256, 130])" +
                                 (fields.empty() ? "" : ", " + fields) + "}]}\n");
}

bool has_nvrtc() {
  const Outcome doctor = hstujit_tool({"doctor", "--json"});
  const auto report = doctor.json();
  return report.is_object() && report.contains("nvrtc") && report["nvrtc"].value("ok", false);
}

}  // namespace hstujit
