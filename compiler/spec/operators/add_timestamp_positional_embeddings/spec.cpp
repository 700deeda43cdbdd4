#include "compiler/spec/operators/add_timestamp_positional_embeddings/spec.h"

#include "compiler/spec/limits.h"

namespace hstujit {

OpSpecPtr parse_add_timestamp_positional_embeddings(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_row_operator<AddTimestampPositionalEmbeddingsSpec>(json, path, mistakes);
}
Json schema_add_timestamp_positional_embeddings() { return fields_schema<TimestampPositionParams>(); }

RowInterface AddTimestampPositionalEmbeddingsSpec::forward_interface() const {
  RowInterface interface = position_interface(params_);
  RowOperand table{"timestamp_embeddings_weight", RowOperandKind::kTable, params_.weight_dtype,
                   "an embedding of each bucket"};
  table.in_gradient = false;
  table.rows = Dimension::of("Kt").at_most(kMaxTableRows);
  interface.inputs.insert(interface.inputs.begin() + 2, table);
  interface.inputs.push_back(RowOperand::scalar("time_bucket_increments", "seconds of a unit of age", 60,
                                                {1e-6, std::numeric_limits<double>::infinity()}));
  Argument timestamps = offsets_argument("timestamps", DataType::kInt64, {});
  timestamps.shape = {interface.sequences->axis()};
  timestamps.doc = "when each row's event was, in seconds";
  timestamps.semantic = Semantic::kData;
  interface.sequences->integers.push_back(timestamps);
  if (params_.query_time) {
    timestamps.name = "query_time";
    timestamps.shape = {Dimension::of("B")};
    timestamps.doc = "the time that each sequence's ages are counted to";
    interface.sequences->integers.push_back(timestamps);
  }
  interface.sequences->integers.push_back(integer_argument(
      "max_contextual_seq_len", "first rows of a sequence, whose positions are their own", kMaxSeqLen));
  return interface;
}

std::map<std::string, int64_t> AddTimestampPositionalEmbeddingsSpec::generated_sizes(const Lengths& lengths) const {
  constexpr int64_t kGeneratedBuckets = 512;
  return {{"Kp", generated_positions(lengths)}, {"Kt", kGeneratedBuckets}};
}

}  // namespace hstujit
