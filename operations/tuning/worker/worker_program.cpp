#include "operations/tuning/worker/worker_program.h"

#include "compiler/support/dynamic_library.h"
#include "compiler/support/files.h"

namespace hstujit {

std::optional<std::string> worker_program(const Environment& environment) {
  if (environment.is_set(Env::kWorker)) {
    const std::string program = environment.text(Env::kWorker);
    return program == "none" ? std::nullopt : std::optional(program);
  }
  const std::string folder = folder_of_code(reinterpret_cast<const void*>(&worker_program));
  const std::string program = plain_path(folder + "/" HSTUJIT_WORKER_FROM_LIBRARY);
  return !folder.empty() && is_program(program) ? std::optional(program) : std::nullopt;
}

}  // namespace hstujit
