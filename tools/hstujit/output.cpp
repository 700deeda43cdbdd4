#include "tools/hstujit/output.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <system_error>

#include "compiler/support/printable.h"

namespace hstujit {

namespace {

// Why a stream has lost something: the first reason. The C library keeps only that it has.
std::atomic<int> output_error;
std::atomic<int> messages_error;

void keep(std::FILE* stream, bool written) {
  int none = 0;
  if (!written) (stream == stderr ? messages_error : output_error).compare_exchange_strong(none, errno);
}

Status lost(const char* name, int error) {
  return Status(Code::kIo, fmt::format("cannot write to {}: {}", name, std::generic_category().message(error)));
}

}  // namespace

void write_text(std::FILE* stream, std::string_view text) {
  keep(stream, std::fwrite(text.data(), 1, text.size(), stream) == text.size());
}

void print_json(std::string_view json) {
  write_text(stdout, printable_json(json));
  if (!json.ends_with('\n')) write_text(stdout, "\n");
}

void print_error(std::string_view sentence) {
  keep(stdout, std::fflush(stdout) == 0);
  std::string text = "hstujit: ";
  for (const char c : printable_lines(sentence)) {
    text += c;
    if (c == '\n') text += "  ";
  }
  write_text(stderr, text + "\n");
}

Status close_output() {
  keep(stdout, std::fclose(stdout) == 0);
  if (output_error != 0) return lost("standard output", output_error);
  return messages_error == 0 ? Status() : lost("standard error", messages_error);
}

}  // namespace hstujit
