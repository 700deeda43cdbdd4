// The float64 reference, from docs/ops-sequences.md, and the timestamps of generated calls.
#include <cmath>
#include <limits>

#include "compiler/spec/operators/add_timestamp_positional_embeddings/spec.h"
#include "compiler/spec/random.h"
#include "compiler/spec/rounding.h"
#include "compiler/spec/sequence_reference.h"

namespace hstujit {

namespace {

constexpr int64_t kGeneratedContext = 2;
constexpr int64_t kNow = 1'790'000'000;  // seconds

// Timestamps of a sequence whose events are a second to a day apart, newest last. Some are later than the last one.
int64_t generated_timestamp(uint64_t seed, size_t sequence, int64_t rows, int64_t row) {
  constexpr int64_t kSteps[] = {1, 60, 1800, 86400};
  const uint64_t bits = random_bits(seed, 77, sequence * 1'000'003 + static_cast<uint64_t>(row));
  const int64_t step = kSteps[sequence % std::size(kSteps)], age = (rows - 1 - row) * step;
  if (bits % 97 == 0) return kNow + step;
  return kNow - age - (age == 0 ? 0 : static_cast<int64_t>(bits >> 8) % step);
}

// now - time, from 0 to 2^63 - 1.
int64_t age_of(int64_t now, int64_t time) {
  int64_t age = 0;
  if (time >= now) return 0;
  return __builtin_sub_overflow(now, time, &age) ? std::numeric_limits<int64_t>::max() : age;
}

}  // namespace

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
    return batch_integers(argument, lengths);
  }
  if (argument.kind == ArgumentKind::kTensor) value.tensor.shape = {static_cast<int64_t>(value.tensor.integers.size())};
  return value;
}

int64_t AddTimestampPositionalEmbeddingsSpec::bucket(int64_t age, double increments, int64_t buckets) const {
  const float units = std::max(static_cast<float>(age), 1e-6F) / static_cast<float>(increments);
  const float value = params_.time_bucket_fn == "sqrt" ? std::sqrt(units) : std::log(units);
  return static_cast<int64_t>(std::clamp(value, 0.0F, static_cast<float>(buckets - 1)));
}

template <typename Visit>
void AddTimestampPositionalEmbeddingsSpec::visit_rows(SequenceReference& call, const Lengths& lengths,
                                                      int64_t positions, int64_t buckets, Visit visit) const {
  const int64_t context = call.integer("max_contextual_seq_len"), last = positions - 1;
  const double increments = call.real("time_bucket_increments");
  int64_t first = 0;
  for (size_t b = 0; b < lengths.rows.size(); ++b) {
    const int64_t rows = lengths.rows[b], targets = params_.num_targets ? lengths.num_targets[b] : 0;
    const int64_t high = first_target(params_, rows, targets);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t position =
          i < context ? std::min(i, last) : std::clamp<int64_t>(high - std::min(i, high) + context, 0, last);
      const int64_t now = params_.query_time ? call.element("query_time", static_cast<int64_t>(b))
                                             : call.element("timestamps", first + rows - 1);
      visit(first + i, position, bucket(age_of(now, call.element("timestamps", first + i)), increments, buckets));
    }
    first += rows;
  }
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
  const double alpha = call.real("alpha");
  const auto rounded = [&](double value) { return params_.round_embeddings ? round_to(params_.dtype, value) : value; };
  visit_rows(call, lengths, call.rows(positions), call.rows(ages), [&](int64_t row, int64_t position, int64_t age) {
    const std::span<double> at = call.row(positions, position), of_age = call.row(ages, age);
    for (size_t c = 0; c < width; ++c) {
      if (forward) {
        call.row("out", row)[c] = rounded(alpha * call.row("seq_embeddings", row)[c]) + rounded(at[c] + of_age[c]);
      } else {
        const double dout = call.row("dout", row)[c];
        call.row("dseq_embeddings", row)[c] = alpha * dout;
        at[c] += dout;
        of_age[c] += dout;
      }
    }
  });
}

std::vector<std::vector<double>> AddTimestampPositionalEmbeddingsSpec::reference_variances(
    Direction direction, const std::vector<HostValue>& inputs, const std::vector<bool>& sequences) const {
  if (direction == Direction::kBackward || !params_.round_embeddings) return {};
  const Signature signature = this->signature(direction);
  const auto integers = [&](const char* name) {
    return inputs[static_cast<size_t>(find_argument(signature, name))].tensor.integers;
  };
  Lengths lengths;
  const std::vector<int64_t> offsets = integers("seq_offsets");
  std::vector<bool> asked;  // by row
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    lengths.rows.push_back(offsets[b + 1] - offsets[b]);
    asked.insert(asked.end(), static_cast<size_t>(lengths.rows.back()), sequences.empty() || sequences[b]);
  }
  if (params_.num_targets) lengths.num_targets = integers("num_targets");

  std::vector<HostValue> values = inputs;
  SequenceReference call(*this, direction, values);
  const double alpha = call.real("alpha");
  const auto width = static_cast<size_t>(params_.width);
  const std::string positions = "position_embeddings_weight", ages = "timestamp_embeddings_weight";
  std::vector<std::vector<double>> variances(signature.size());
  std::vector<double>& out = variances[static_cast<size_t>(find_argument(signature, "out"))];
  out.resize(asked.size() * width);
  visit_rows(call, lengths, call.rows(positions), call.rows(ages), [&](int64_t row, int64_t position, int64_t age) {
    if (!asked[static_cast<size_t>(row)]) return;
    const std::span<double> at = call.row(positions, position), of_age = call.row(ages, age);
    for (size_t c = 0; c < width; ++c)
      out[static_cast<size_t>(row) * width + c] =
          rounding_choice(alpha * call.row("seq_embeddings", row)[c]) + rounding_choice(at[c] + of_age[c]);
  });
  return variances;
}

double AddTimestampPositionalEmbeddingsSpec::rounding_choice(double value) const {
  constexpr double kArithmetic = 0x1p-22, kStep = 0x1p-149;  // of fp32
  const double off = kArithmetic * std::abs(value) + kStep;
  const double distance = round_to(params_.dtype, value + off) - round_to(params_.dtype, value - off);
  return std::isfinite(distance) ? distance * distance : 0;
}

const OperatorReference& reference_add_timestamp_positional_embeddings() {
  return sequence_reference<AddTimestampPositionalEmbeddingsSpec>();
}

}  // namespace hstujit
