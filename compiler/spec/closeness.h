// How near floating-point outputs must be to the float64 reference: the one rule of runs with --check, of the tuner and
// of tests. docs/numerics.md derives it.
//
// The error of an output is ||out - ref|| / max(||ref|| + floor, rounding / bound), and at most `bound`, which is the
// spec's error_bound().
//
// Near 0 the values of a data type lie one step apart, whatever a kernel does, so the floor is what lets each element
// be off by a step: sqrt(elements) * smallest_step / bound. It is nothing but for fp16 outputs around 2^-14 and below.
// Where an output has as large a part for each sequence, whatever its rows, elements that are 0 have no share in the
// floor.
//
// `rounding` is the norm that the error of a right implementation exceeds with probability e^-20 at most, by the spec's
// error_variances(). It counts where an output is a difference of much larger numbers, as a dot product may be; it is
// computed only for what exceeds the bound without it.
//
// An infinity is right where the reference, off by the bound, rounds to that infinity in the output's type. It has no
// share in any norm, and where there may be one `rounding` has none.
//
// Besides the whole, every sequence must be within kSequenceSlack times the bound on its own (within `rounding` as it
// is), so that one wrong short sequence does not drown among long ones.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/spec/op_spec.h"

namespace hstujit {

struct Closeness {
  double error = 0;     // of the whole output; infinity with a NaN or a wrong infinity in it
  std::string mistake;  // a sentence; empty when it is near enough

  bool good() const { return mistake.empty(); }
};

// Compares the results of one call. Its arguments must outlive it.
class ReferenceComparison {
 public:
  static constexpr double kSequenceSlack = 4;

  // `inputs` and `reference` are values by argument, and may be the same.
  ReferenceComparison(const OpSpec& spec, Direction direction, const Lengths& lengths,
                      const std::vector<HostValue>& inputs, const std::vector<HostValue>& reference);

  // `actual`: the elements of output `index` of the signature, of which the reference has as many; or their bytes, as
  // pack() of rounding.h leaves them.
  Closeness of(size_t index, const std::vector<double>& actual);
  Closeness of(size_t index, std::span<const std::byte> actual);

  // `rounding` of the whole output; 0 where the spec does not say.
  double rounding(size_t index);

 private:
  // Elements [begin, end) of an output, of a sequence or of all of them.
  struct Range {
    size_t begin, end;
  };
  // Sums of squares over a range.
  struct Squares {
    double difference = 0, reference = 0;  // not finite, where an element is a NaN or a wrong infinity
    double elements = 0;                   // that have a share in the floor

    void add(const Squares& other);
  };
  struct Norms {
    double difference, reference;  // the reference's with the floor
  };
  // The reference's element, off by the bound and away from 0, in the output's type: an infinity, if that may be there.
  double rounded_up(DataType type, double expected) const;
  // Fills `to` with the output's elements from `begin` on. Several threads call it.
  using Reader = std::function<void(size_t begin, std::span<double> to)>;

  Closeness judge(size_t index, const Reader& read);
  // Sums of squares of each range.
  std::vector<Squares> squares(size_t index, const Reader& read, const std::vector<Range>& ranges) const;
  Squares squares(size_t index, const Reader& read, const Range& range) const;
  Norms norms(size_t index, const Squares& squares) const;
  // Learns the variances of these sequences, of all where it is empty.
  void learn(std::vector<bool> sequences);
  double rounding(size_t index, const Range& range) const;
  std::vector<Range> ranges_of_sequences(size_t index) const;

  const OpSpec& spec_;
  const Direction direction_;
  const Lengths& lengths_;
  const std::vector<HostValue>& inputs_;
  const std::vector<HostValue>& reference_;
  const Signature signature_;
  const double bound_;
  std::vector<bool> known_;  // sequences whose variances are
  std::vector<std::vector<double>> variances_;
};

}  // namespace hstujit
