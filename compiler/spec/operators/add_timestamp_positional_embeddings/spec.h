// add_timestamp_positional_embeddings: scaled rows plus the embeddings of each one's position, counted from the end of
// its history, and of its age (docs/ops-sequences.md, "add_timestamp_positional_embeddings").
#pragma once

#include "compiler/spec/operators/add_positional_embeddings/positions.h"

namespace hstujit {

class SequenceReference;

struct TimestampPositionParams : PositionParams {
  std::string time_bucket_fn = "sqrt";
  bool query_time = false;
  bool round_embeddings = false;

  static constexpr auto fields() {
    using P = TimestampPositionParams;
    return std::tuple_cat(
        fields_of<P>(),
        std::make_tuple(
            field("time_bucket_fn", &P::time_bucket_fn, "how an age becomes a bucket").one_of("sqrt log"),
            field("query_time", &P::query_time,
                  "launches take query_time, which ages are counted to; else that is a sequence's last timestamp"),
            field("round_embeddings", &P::round_embeddings,
                  "alpha times a row, and the sum of its two embeddings, are rounded to dtype before they are added")));
  }

  void make_canonical() { round_embeddings = round_embeddings && dtype != DataType::kFp32; }
};

// Forward: seq_embeddings (L, D), position_embeddings_weight (Kp, D), timestamp_embeddings_weight (Kt, D), alpha
// (float), time_bucket_increments (float), seq_offsets (B+1), [num_targets (B)], timestamps (L), [query_time (B)],
// max_contextual_seq_len (int), out (L, D). Backward: dout and all that is not a row or a table, dseq_embeddings,
// dposition_embeddings_weight, dtimestamp_embeddings_weight.
class AddTimestampPositionalEmbeddingsSpec final : public SequenceOperator<TimestampPositionParams> {
 public:
  static constexpr std::string_view kOp = "add_timestamp_positional_embeddings";
  static constexpr bool kHasWeights = true;

  explicit AddTimestampPositionalEmbeddingsSpec(TimestampPositionParams params)
      : SequenceOperator(kOp, std::move(params)) {}
  double operations(Direction) const override { return 3; }
  std::map<std::string, int64_t> generated_sizes(const Lengths& lengths) const override;

  // Functions of the reference (sequence_reference.h). Variances are known of forward with round_embeddings, for values
  // that round to another one where they are off by a rounding of fp32.
  std::vector<std::vector<double>> reference_variances(Direction direction, const std::vector<HostValue>& inputs,
                                                       const std::vector<bool>& sequences) const;
  void reference_rows(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const;
  HostValue make_integers(const Argument& argument, const Lengths& lengths, uint64_t seed) const;

 protected:
  bool has_backward_kernel() const override { return true; }
  RowInterface forward_interface() const override;

 private:
  // The bucket of an age in seconds, in fp32 as every implementation computes it.
  int64_t bucket(int64_t age, double increments, int64_t buckets) const;
  // Calls visit(row, position, bucket) for each row of all sequences: which rows of both tables it finds, that have so
  // many.
  template <typename Visit>
  void visit_rows(SequenceReference& call, const Lengths& lengths, int64_t positions, int64_t buckets,
                  Visit visit) const;
  // Variance of a value that is computed in fp32 and then rounded to the type of rows: the square of the distance of
  // the two numbers that it may become, 0 where that is one.
  double rounding_choice(double value) const;
};

}  // namespace hstujit
