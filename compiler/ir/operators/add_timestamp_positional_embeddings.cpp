// add_timestamp_positional_embeddings -> hstu.row.
#include <cstdint>
#include <limits>

#include "compiler/ir/positions.h"
#include "compiler/ir/row_builder.h"
#include "compiler/spec/operators/add_timestamp_positional_embeddings/spec.h"

namespace hstujit {

namespace {

mlir::Value find_position(RowIndex& at, const PositionParams& params) {
  Ops& ops = at.ops();
  const HistoryPosition history = history_position(at, params);
  const mlir::Value context = at.integer("max_contextual_seq_len");
  const mlir::Value from_end = ops.add(ops.sub(history.high, history.position), context);
  return ops.select(ops.lt(at.position(), context), at.position(), from_end);
}

// now - time, from 0 to 2^63 - 1. Each operation fits 64 bits, whatever the times are: a time after `now` counts as
// `now`, and one that is more than 2^63 - 1 before it as that one.
mlir::Value age_of(Ops& ops, mlir::Value now, mlir::Value time) {
  const mlir::Value most = ops.integer(std::numeric_limits<int64_t>::max());
  const mlir::Value first = ops.sub(ops.max(now, ops.integer(-1)), most);
  return ops.sub(now, ops.max(ops.min(time, now), first));
}

mlir::Value find_bucket(RowIndex& at, const TimestampPositionParams& params) {
  Ops& ops = at.ops();
  const Dimension rows = Dimension::jagged(std::string(kSequenceAxis), "seq_offsets");
  const mlir::Value first = at.first_row(rows);
  const mlir::Value last = ops.sub(ops.add(first, at.rows(rows)), ops.integer(1));
  const mlir::Value now = params.query_time ? at.element("query_time", at.sequence()) : at.element("timestamps", last);
  const mlir::Value age = age_of(ops, now, at.element("timestamps", ops.add(first, at.position())));
  const mlir::Value positive = ops.maxf(ops.to_real(age), ops.real(1e-6));
  const mlir::Value units = ops.divf(positive, at.real("time_bucket_increments"));
  const mlir::Value bucket = params.time_bucket_fn == "sqrt" ? ops.sqrt(units) : ops.log(units);
  // In real numbers first: an integer would not hold every one.
  const mlir::Value most = ops.to_real(ops.sub(at.extent("timestamp_embeddings_weight"), ops.integer(1)));
  return ops.to_integer(ops.minf(ops.maxf(bucket, ops.real(0)), most));
}

}  // namespace

Result<Module> build_add_timestamp_positional_embeddings(mlir::MLIRContext& context, const OpSpec& spec) {
  const auto& positional = static_cast<const AddTimestampPositionalEmbeddingsSpec&>(spec);
  RowBuilder row(context, positional);
  RowIndex& at = row.index();
  const mlir::Value position = find_position(at, positional.params());
  at.find("position_embeddings_weight", at.clamped(position, "position_embeddings_weight"));
  at.find("timestamp_embeddings_weight", find_bucket(at, positional.params()));
  Ops& ops = row.ops();
  const mlir::Value at_position = row.input("position_embeddings_weight");
  const mlir::Value of_age = row.input("timestamp_embeddings_weight");
  const mlir::Value scaled = ops.mulf(row.input("seq_embeddings"), row.splat(row.input("alpha")));
  if (!positional.params().round_embeddings) return row.finish({ops.addf(ops.addf(scaled, at_position), of_age)});
  const DataType dtype = positional.dtype();
  return row.finish({ops.addf(row.rounded(scaled, dtype), row.rounded(ops.addf(at_position, of_age), dtype))});
}

}  // namespace hstujit
