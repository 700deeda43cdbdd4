// Values of the fields of an entry of "ops". What is wrong with one is added to `mistakes`; the value is any then, but
// for what is said here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/fields.h"
#include "compiler/spec/instance_entry.h"
#include "compiler/spec/mistakes.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/shared_integers.h"

namespace hstujit {

// Empty where there is no name.
std::string parse_name(const InstanceEntry& entry, const std::string& path, Mistakes& mistakes);

// `spec` is null where nothing is known of the operator.
std::vector<Direction> parse_directions(const Json& json, const std::string& path, const OpSpec* spec,
                                        Mistakes& mistakes);

// An integer, or a list of at least one when `json` is a list.
std::vector<int64_t> parse_integers(const Json& json, const std::string& path, const FieldRules& rules,
                                    Mistakes& mistakes);

// Ascending, each once.
SharedIntegers parse_max_seq_lens(const Json& json, const std::string& path, Mistakes& mistakes);

// Splits "num_targets: true | false | count", or another of kCountedFields, into the operator's flag and the count;
// which is `usual` where there only are some.
void take_count(Json& parameters, std::string_view field, const std::string& path, int64_t usual, int64_t& count,
                Mistakes& mistakes);

// 1 / attn_dim, or 1, where there is none. `spec` as above.
double parse_alpha(const InstanceEntry& entry, const std::string& path, const OpSpec* spec, Mistakes& mistakes);

}  // namespace hstujit
