// Reads the entries of "ops" of one config.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "compiler/spec/config.h"
#include "compiler/spec/instance_entry.h"

namespace hstujit {

// Reads common parts of entries once and shares them: a default, however many entries take it, and a file of lengths,
// however many name it.
class InstanceReader {
 public:
  // Files that entries name are relative to `folder`.
  explicit InstanceReader(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // As parse_instance(). A mistake in a default is one of every entry that takes it; what else such a value has beyond
  // those that are reported is counted for the first.
  Instance read(const InstanceEntry& entry, const std::string& path, Mistakes& mistakes);

 private:
  // A default, as it was read for the first entry that takes it.
  template <typename T>
  struct Known {
    T value;
    std::string place;
    std::vector<Mistake> mistakes;
  };
  template <typename T>
  using KnownValues = std::map<const Json*, Known<T>>;

  // Returns read(json, place, mistakes) of the entry's member of that name, which must exist.
  template <typename T, typename Read>
  T read_once(KnownValues<T>& known, const InstanceEntry& entry, std::string_view name, const std::string& place,
              Mistakes& mistakes, const Read& read);

  void read_size(const InstanceEntry& entry, const std::string& op, const std::string& path, Instance& instance,
                 Mistakes& mistakes);
  LengthSource read_lengths(const Json& json, const std::string& path, Mistakes& mistakes);
  const Result<SharedIntegers>& lengths_of_file(const std::filesystem::path& path);
  SharedIntegers read_delta_len(const InstanceEntry& entry, const std::string& path, const OpSpec* spec,
                                Mistakes& mistakes);

  std::filesystem::path folder_;
  KnownValues<LengthSource> lengths_;
  KnownValues<SharedIntegers> integers_;
  std::map<std::filesystem::path, Result<SharedIntegers>> files_;
};

}  // namespace hstujit
