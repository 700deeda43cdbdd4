// The float64 reference, from docs/ops.md, and the timestamps of generated calls.
#include <cmath>

#include "compiler/spec/operators/add_timestamp_positional_embeddings/spec.h"
#include "compiler/spec/random.h"
#include "compiler/spec/sequence_reference.h"

namespace hstujit {

namespace {

constexpr int64_t kGeneratedContext = 2, kGeneratedBuckets = 512;
constexpr int64_t kNow = 1'790'000'000;  // seconds

// Of a sequence whose events are a second to a day apart, newest last. Some are later than the last one.
int64_t generated_timestamp(uint64_t seed, size_t sequence, int64_t rows, int64_t row) {
  constexpr int64_t kSteps[] = {1, 60, 1800, 86400};
  const uint64_t bits = random_bits(seed, 77, sequence * 1'000'003 + static_cast<uint64_t>(row));
  const int64_t step = kSteps[sequence % std::size(kSteps)], age = (rows - 1 - row) * step;
  if (bits % 97 == 0) return kNow + step;
  return kNow - age - (age == 0 ? 0 : static_cast<int64_t>(bits >> 8) % step);
}

}  // namespace

std::map<std::string, int64_t> AddTimestampPositionalEmbeddingsSpec::generated_sizes(const Lengths& lengths) const {
  return {{"Kp", generated_positions(lengths)}, {"Kt", kGeneratedBuckets}};
}

HostValue AddTimestampPositionalEmbeddingsSpec::make_integers(const Argument& argument, const Lengths& lengths,
                                                              uint64_t seed) const {
  HostValue value;
  if (argument.name == "max_contextual_seq_len") {
    value.scalar = kGeneratedContext;
  } else if (argument.name == "timestamps") {
    // An age whose logarithm is close to an integer would be in either bucket.
    const auto near = [](int64_t age) {
      const double logarithm = std::log(static_cast<double>(std::max<int64_t>(age, 1)) / 60);
      return std::abs(logarithm - std::round(logarithm)) < 1e-5;
    };
    for (size_t b = 0; b < lengths.rows.size(); ++b) {
      for (int64_t i = 0; i < lengths.rows[b]; ++i) {
        const int64_t time = generated_timestamp(seed, b, lengths.rows[b], i);
        value.tensor.integers.push_back(near(kNow - time) ? time + 1 : time);
      }
    }
  } else if (argument.name == "query_time") {
    value.tensor.integers.assign(lengths.rows.size(), kNow);
  } else {
    return RowSpec::make_integers(argument, lengths, seed);
  }
  if (argument.kind == ArgumentKind::kTensor) value.tensor.shape = {static_cast<int64_t>(value.tensor.integers.size())};
  return value;
}

int64_t AddTimestampPositionalEmbeddingsSpec::bucket(int64_t age, double increments, int64_t buckets) const {
  const float units = std::max(static_cast<float>(age), 1e-6F) / static_cast<float>(increments);
  const float value = params_.time_bucket_fn == "sqrt" ? std::sqrt(units) : std::log(units);
  return static_cast<int64_t>(std::clamp(value, 0.0F, static_cast<float>(buckets - 1)));
}

void AddTimestampPositionalEmbeddingsSpec::reference_rows(Direction direction, const Lengths& lengths,
                                                          std::vector<HostValue>& values) const {
  SequenceReference call(*this, direction, values);
  const bool forward = direction == Direction::kForward;
  const auto width = static_cast<size_t>(params_.width);
  const std::string prefix = forward ? "" : "d";
  const std::string positions = prefix + "position_embeddings_weight", ages = prefix + "timestamp_embeddings_weight";
  if (!forward) {
    call.resize(positions, generated_sizes(lengths).at("Kp"), params_.width);
    call.resize(ages, generated_sizes(lengths).at("Kt"), params_.width);
  }
  call.resize(forward ? "out" : "dseq_embeddings", lengths.total_rows(), params_.width);
  const int64_t context = call.integer("max_contextual_seq_len"), last = call.rows(positions) - 1;
  const double alpha = call.real("alpha"), increments = call.real("time_bucket_increments");
  int64_t first = 0;
  for (size_t b = 0; b < lengths.rows.size(); ++b) {
    const int64_t rows = lengths.rows[b], targets = params_.num_targets ? lengths.num_targets[b] : 0;
    const int64_t high = first_target(params_, rows, targets);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = first + i;
      const int64_t position =
          i < context ? std::min(i, last) : std::clamp<int64_t>(high - std::min(i, high) + context, 0, last);
      const int64_t now = params_.query_time ? call.element("query_time", static_cast<int64_t>(b))
                                             : call.element("timestamps", first + rows - 1);
      const int64_t age = bucket(now - call.element("timestamps", row), increments, call.rows(ages));
      const std::span<double> at = call.row(positions, position), of_age = call.row(ages, age);
      for (size_t c = 0; c < width; ++c) {
        if (forward) {
          call.row("out", row)[c] = alpha * call.row("seq_embeddings", row)[c] + at[c] + of_age[c];
        } else {
          const double dout = call.row("dout", row)[c];
          call.row("dseq_embeddings", row)[c] = alpha * dout;
          at[c] += dout;
          of_age[c] += dout;
        }
      }
    }
    first += rows;
  }
}

}  // namespace hstujit
