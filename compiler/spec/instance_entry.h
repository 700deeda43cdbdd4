// An entry of "ops" as its reader sees it: its own members, and the defaults that its operator knows and that it does
// not give itself. Values stay where they are, since a default may be a list of millions and there may be thousands of
// entries: what this refers to outlives it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/json.h"

namespace hstujit {

class InstanceEntry {
 public:
  struct Member {
    std::string_view name;
    const Json* value;
    bool inherited;
  };

  using Members = std::vector<Member>;

  // Finds the members of an object of defaults that some entry may take.
  static Members defaults_of(const Json& defaults);

  explicit InstanceEntry(const Json& own, const Members& defaults = {});

  const Json& own() const { return *own_; }
  const Members& members() const { return members_; }  // none where `own` is no object

  const Json* find(std::string_view name) const;  // null where there is none
  bool inherits(std::string_view name) const;
  std::string op() const;  // empty where that is no text

 private:
  const Member* member(std::string_view name) const;

  const Json* own_;
  Members members_;
};

}  // namespace hstujit
