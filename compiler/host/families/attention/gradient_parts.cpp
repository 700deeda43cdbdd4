#include "compiler/host/families/attention/gradient_parts.h"

#include "compiler/spec/rounding.h"

namespace hstujit {

namespace {

// Elements of a tensor of reals in memory, (rows) or (rows, heads).
class Elements {
 public:
  Elements(const Arguments& arguments, const std::string& name, const Operand& operand)
      : data_(arguments.data(name)),
        dtype_(operand.dtype),
        stride_(operand.heads > 0 ? arguments.stride(name, 0) : 1) {}

  double get(int64_t row, int64_t head) const {
    const int64_t place = row * stride_ + head;
    if (dtype_ == DataType::kFp32) return static_cast<const float*>(data_)[place];
    const uint16_t bits = static_cast<const uint16_t*>(data_)[place];
    return dtype_ == DataType::kBf16 ? from_bf16_bits(bits) : from_fp16_bits(bits);
  }
  void put(int64_t row, int64_t head, double value) {
    const int64_t place = row * stride_ + head;
    if (dtype_ == DataType::kFp32) {
      static_cast<float*>(data_)[place] = static_cast<float>(value);
    } else {
      static_cast<uint16_t*>(data_)[place] = dtype_ == DataType::kBf16 ? to_bf16_bits(value) : to_fp16_bits(value);
    }
  }

 private:
  void* data_;
  DataType dtype_;
  int64_t stride_;
};

}  // namespace

GradientParts::GradientParts(const AttentionSpec& spec) : spec_(spec), sums_of_pairs_(spec.operands()) {
  for (const Operand& operand : spec.operands()) {
    if (!operand.gradient || operand.kind == &pair_kind() || operand.has_sites()) continue;
    const auto part = static_cast<int64_t>(sums_.size());
    sums_.push_back({&operand, false, part});
    if (operand.has_slopes()) sums_.push_back({&operand, true, part + 1});
  }
}

void GradientParts::finish(const Arguments& arguments, const float* parts, const SequenceOffsets& offsets) const {
  finish_sums_of_pairs(arguments, parts);
  parts += first();
  const int64_t heads = spec_.params().heads;
  for (const Operand& operand : spec_.operands()) {
    if (!operand.gradient || operand.kind == &pair_kind() || operand.has_sites()) continue;
    const bool adds = spec_.params().adds_gradients, of_all = operand.kind == &scalar_kind();
    Elements gradient(arguments, operand.gradient_name(), operand);
    const Elements before(arguments, adds ? operand.before_name() : operand.gradient_name(), operand);
    const auto part_of = [&](int64_t row, int64_t head) {
      double sum = 0;
      for (const Sum& own : sums_) {
        if (own.operand == &operand) sum += parts[(row * heads + head) * count() + own.part];
      }
      return sum;
    };
    if (operand.kind == &sequence_kind()) {
      for (size_t b = 0; b + 1 < offsets.keys.size(); ++b) {
        const auto sequence = static_cast<int64_t>(b);
        double sum = adds ? before.get(sequence, 0) : 0;
        for (int64_t row = offsets.keys[b]; row < offsets.keys[b + 1]; ++row) {
          for (int64_t head = 0; head < heads; ++head) sum += part_of(row, head);
        }
        gradient.put(sequence, 0, sum);
      }
      continue;
    }
    double total = of_all && adds ? before.get(0, 0) : 0;
    // Factors are of rows of q.
    const std::vector<int64_t>& own = operand.use == OperandUse::kFactor ? offsets.queries : offsets.keys;
    for (size_t b = 0; b + 1 < own.size(); ++b) {
      for (int64_t row = own[b]; row < own[b + 1]; ++row) {
        const int64_t key_row =
            offsets.keys[b + 1] - (own[b + 1] - row);  // in front of the sequence there are no parts
        double sum = 0;
        for (int64_t head = 0; head < heads; ++head) {
          const double part = key_row < offsets.keys[b] ? 0 : part_of(key_row, head);
          sum += part;
          if (operand.heads > 0) gradient.put(row, head, part + (adds ? before.get(row, head) : 0));
        }
        total += sum;
        if (!of_all && operand.heads == 0) gradient.put(row, 0, sum + (adds ? before.get(row, 0) : 0));
      }
    }
    if (of_all) gradient.put(0, 0, total);
  }
}

void GradientParts::finish_sums_of_pairs(const Arguments& arguments, const float* parts) const {
  for (const OperandSums::Part& part : sums_of_pairs_.parts) {
    const Operand& operand = *part.operand;
    const bool adds = spec_.params().adds_gradients;
    Elements gradient(arguments, operand.gradient_name(), operand);
    const Elements before(arguments, adds ? operand.before_name() : operand.gradient_name(), operand);
    for (int64_t i = 0; i < part.entries * part.heads; ++i) {
      const int64_t entry = i % part.entries, head = i / part.entries;
      double sum = adds ? before.get(entry, head) : 0;
      for (int64_t chain = 0; chain < kChains; ++chain) sum += parts[chain * sums_of_pairs_.count() + part.first + i];
      gradient.put(entry, head, sum);
    }
  }
}

}  // namespace hstujit
