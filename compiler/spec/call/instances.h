// The instances of an operator that its calls tell apart: a first one, and those that differ from it in one parameter
// and may have other arguments.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/spec/call/declaration.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/json.h"

namespace hstujit {

class CallInstances {
 public:
  // kInternal where the declaration does not fit the operator's parameters.
  static Result<CallInstances> make(std::string_view op, CallDeclaration declaration, const Json& schema);

  struct Variant {
    std::string parameter;
    Json value;
    OpSpecPtr spec;
  };

  const CallDeclaration& declaration() const { return declaration_; }
  const OpSpec& first() const { return *first_; }
  const std::vector<Variant>& variants() const { return variants_; }
  // Signatures of all instances. The first one has nearly all arguments that there are.
  std::vector<Signature> signatures(Direction direction) const;
  // Names of constants in these shapes: a parameter, a product of two, or a letter of the declaration.
  std::map<int64_t, std::string> size_names(const std::vector<Signature>& signatures) const;

 private:
  CallInstances(std::string_view op, CallDeclaration declaration)
      : declaration_(std::move(declaration)), json_({{"op", op}}) {}

  Status choose_sizes(const Json& schema);
  void add_variants(const Json& properties);
  // Adds a variant with a size of its own for a parameter that may be 0.
  void add_sizes(const std::string& name);
  // Null where there is no such instance.
  OpSpecPtr with(const Json& changes) const;
  // Changes that bring arguments, all together.
  Json additions(Direction direction) const;

  CallDeclaration declaration_;
  Json json_;                                                 // of the first instance
  std::vector<std::pair<std::string, int64_t>> sizes_;        // no two are equal, so that shapes tell them apart
  std::vector<std::pair<std::string, int64_t>> added_sizes_;  // of variants alone
  OpSpecPtr first_;
  std::vector<Variant> variants_;
};

}  // namespace hstujit
