#include "runtime/engine/shipped_records.h"

#include <filesystem>
#include <system_error>

#include "compiler/support/dynamic_library.h"

namespace hstujit {

const char kRecordsFromLibrary[] = HSTUJIT_RECORDS_FROM_LIBRARY;

std::string shipped_records(const std::string& library_folder) {
  if (library_folder.empty()) return {};
  std::error_code error;
  const auto folder = std::filesystem::canonical(std::filesystem::path(library_folder) / kRecordsFromLibrary, error);
  return !error && std::filesystem::is_directory(folder, error) ? folder.native() : std::string();
}

std::string shipped_records() { return shipped_records(folder_of_code(kRecordsFromLibrary)); }

}  // namespace hstujit
