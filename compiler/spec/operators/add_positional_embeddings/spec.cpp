#include "compiler/spec/operators/add_positional_embeddings/spec.h"

namespace hstujit {

OpSpecPtr parse_add_positional_embeddings(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<AddPositionalEmbeddingsSpec>(json, path, mistakes);
}
Json schema_add_positional_embeddings() { return fields_schema<PositionParams>(); }

std::map<std::string, int64_t> AddPositionalEmbeddingsSpec::generated_sizes(const Lengths& lengths) const {
  return {{"Kp", generated_positions(lengths)}};
}

}  // namespace hstujit
