#include "operations/tuning/data/strided_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "compiler/support/integers.h"

namespace hstujit {

namespace {

// Elements that strides are multiples of.
int64_t unit_of(const Argument& argument) {
  return std::max<int64_t>(1, argument.alignment / static_cast<int64_t>(size_of(argument.dtype)));
}

// Calls visit(offset in the packed image, offset in the strided one, bytes) for each innermost row.
void for_each_piece(const ProblemData& problem, size_t index,
                    const std::function<void(size_t, size_t, size_t)>& visit) {
  const std::vector<int64_t>& shape = problem.shapes[index];
  const std::vector<int64_t>& strides = problem.strides[index];
  const size_t element = size_of(problem.signature[index].dtype);
  const size_t piece = static_cast<size_t>(shape.back()) * element;
  int64_t pieces = 1;
  for (size_t d = 0; d + 1 < shape.size(); ++d) pieces *= shape[d];
  for (int64_t p = 0; p < pieces; ++p) {
    int64_t rest = p, offset = 0;
    for (size_t d = shape.size() - 1; d-- > 0;) {
      offset += rest % shape[d] * strides[d];
      rest /= shape[d];
    }
    visit(static_cast<size_t>(p) * piece, problem.offsets[index] + static_cast<size_t>(offset) * element, piece);
  }
}

// Gives a contiguous argument rows of `width` elements, and `gap` elements before it and after all that each outer axis
// counts.
void lay_out(ProblemData& problem, size_t index, int64_t width, int64_t gap) {
  const std::vector<int64_t>& shape = problem.shapes[index];
  const auto element = static_cast<int64_t>(size_of(problem.signature[index].dtype));
  problem.strides.resize(problem.signature.size());
  problem.offsets.resize(problem.signature.size(), 0);
  problem.offsets[index] = static_cast<size_t>(gap * element);
  std::vector<int64_t>& strides = problem.strides[index];
  strides.assign(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;) {
    strides[d] = width;
    width = width * shape[d] + gap;
  }
  std::vector<std::byte> image(static_cast<size_t>((gap + width) * element), std::byte{kPoison});
  for_each_piece(problem, index, [&](size_t packed, size_t strided, size_t bytes) {
    std::copy_n(problem.images[index].begin() + static_cast<std::ptrdiff_t>(packed), bytes,
                image.begin() + static_cast<std::ptrdiff_t>(strided));
  });
  problem.images[index] = std::move(image);
}

std::vector<std::byte> packed_image(const ProblemData& problem, size_t index, const std::vector<std::byte>& image) {
  std::vector<std::byte> packed;
  for_each_piece(problem, index, [&](size_t, size_t strided, size_t bytes) {
    const auto begin = image.begin() + static_cast<std::ptrdiff_t>(strided);
    packed.insert(packed.end(), begin, begin + static_cast<std::ptrdiff_t>(bytes));
  });
  return packed;
}

// As lay_out makes it.
double laid_out_elements(const std::vector<int64_t>& shape, int64_t width, int64_t gap) {
  auto elements = static_cast<double>(width);
  for (size_t d = shape.size() - 1; d-- > 0;)
    elements = elements * static_cast<double>(shape[d]) + static_cast<double>(gap);
  return elements + static_cast<double>(gap);
}

}  // namespace

double aligned_elements(const Argument& argument, const std::vector<int64_t>& shape) {
  if (shape.empty()) return 1;
  return laid_out_elements(shape, shape.size() < 2 ? shape.back() : round_up(shape.back(), unit_of(argument)), 0);
}

double spread_elements(const Argument& argument, const std::vector<int64_t>& shape) {
  if (shape.size() < 2) return aligned_elements(argument, shape);
  const int64_t unit = unit_of(argument);
  return laid_out_elements(shape, round_up(shape.back(), unit) + unit, unit);
}

bool is_strided(const ProblemData& problem, size_t argument) {
  return !problem.strides.empty() && !problem.strides[argument].empty();
}

void align_rows(ProblemData& problem) {
  for (size_t i = 0; i < problem.signature.size(); ++i) {
    if (problem.shapes[i].size() < 2) continue;
    const int64_t row = problem.shapes[i].back(), width = round_up(row, unit_of(problem.signature[i]));
    if (width != row) lay_out(problem, i, width, 0);
  }
}

ProblemData spread(const ProblemData& problem) {
  ProblemData result = problem;
  result.strides.resize(problem.signature.size());
  result.offsets.resize(problem.signature.size(), 0);
  for (size_t i = 0; i < problem.signature.size(); ++i) {
    if (problem.shapes[i].size() < 2) continue;
    if (is_strided(problem, i)) result.images[i] = packed_image(problem, i, problem.images[i]);
    const int64_t unit = unit_of(problem.signature[i]);
    lay_out(result, i, round_up(problem.shapes[i].back(), unit) + unit, unit);
  }
  return result;
}

Result<std::vector<std::byte>> gather(const ProblemData& problem, size_t argument,
                                      const std::vector<std::byte>& image) {
  if (!is_strided(problem, argument)) return image;
  std::vector<std::byte> rest = image;
  for_each_piece(problem, argument, [&](size_t, size_t strided, size_t bytes) {
    std::fill_n(rest.begin() + static_cast<std::ptrdiff_t>(strided), bytes, std::byte{kPoison});
  });
  if (std::any_of(rest.begin(), rest.end(), [](std::byte byte) { return byte != std::byte{kPoison}; })) {
    return Status(Code::kCheckFailed,
                  fmt::format("{} was written outside of its strided rows", problem.signature[argument].name));
  }
  return packed_image(problem, argument, image);
}

}  // namespace hstujit
