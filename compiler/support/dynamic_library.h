// A shared library opened at run time, and its functions. Failures say what was looked for and where.
#pragma once

#include <string>
#include <vector>

#include "compiler/support/status.h"

namespace hstujit {

class DynamicLibrary {
 public:
  enum class Keep {
    kUntilDestroyed,
    kForever,  // never unloaded: for libraries with thread-local state or exit handlers of their own
  };

  // Opens the first of `candidates` that can be opened: paths, or names for the loader to search. Symbols stay local
  // to the library. `what` names it in messages: "the CUDA driver". On failure the code is `code` and the sentence
  // lists every candidate with the loader's reason.
  static Result<DynamicLibrary> open(const std::string& what, const std::vector<std::string>& candidates, Code code,
                                     Keep keep = Keep::kUntilDestroyed);

  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  ~DynamicLibrary();

  // The candidate that was opened, and the file that it turned out to be ("" when the loader does not tell).
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }

  // Address of a function; the open's code when the library has no such symbol.
  template <typename Function>
  Result<Function*> function(const std::string& symbol) const {
    HSTUJIT_ASSIGN_OR_RETURN(void* address, find(symbol));
    return reinterpret_cast<Function*>(address);
  }
  // The same, null when missing.
  template <typename Function>
  Function* optional_function(const std::string& symbol) const {
    return reinterpret_cast<Function*>(find_or_null(symbol));
  }

 private:
  DynamicLibrary() = default;
  Result<void*> find(const std::string& symbol) const;
  void* find_or_null(const std::string& symbol) const;
  void close();

  void* handle_ = nullptr;
  Code code_ = Code::kInternal;
  std::string what_;
  std::string name_;
  std::string path_;
};

// Folder of the shared library or program that contains `address`; "" when the loader does not tell.
std::string folder_of_code(const void* address);

}  // namespace hstujit
