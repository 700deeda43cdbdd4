// The most bytes that are read of each kind of file or answer. A larger one is refused before any memory is taken for
// it: as a bad entry of a cache, which is a miss, or with a sentence where somebody named the file.
//
// Each is far above what the project writes and what people have, and far below what harms a process.
#pragma once

#include <cstddef>

namespace hstujit {

// Limits of a cache, whether it is a directory, a bundle or a remote one.
inline constexpr size_t kMaxMetadataBytes = size_t{1} << 20;   // a kernel's is 2 KB
inline constexpr size_t kMaxCubinBytes = size_t{256} << 20;    // the largest kernel has a few hundred KB
inline constexpr size_t kMaxRecordBytes = size_t{64} << 20;    // 2 KB for each of some thousand candidates
inline constexpr size_t kMaxRecordFindings = size_t{1} << 16;  // times and rejections, of all workloads
inline constexpr size_t kMaxChoiceBytes = size_t{1} << 20;     // a config and a few names

// A bundle as it is and as a tar archive: a cache of ten thousand kernels has 1 GB.
inline constexpr size_t kMaxBundleBytes = size_t{4} << 30;
// Limits of what a zstd frame unpacks to, since a few bytes may claim any size: so much, and this many times its own
// size. Kernels shrink to a tenth.
inline constexpr size_t kMaxUnpackedBytes = size_t{64} << 20;
inline constexpr size_t kMaxUnpackedTimes = 32;

// Limits of files from people and their programs. Parsed JSON takes some ten times the bytes of its text.
inline constexpr size_t kMaxConfigBytes = size_t{64} << 20;  // of a config or a grid
inline constexpr size_t kMaxConfigKernels = 10'000;  // that a config asks for: instances, directions, max_seq_len
inline constexpr size_t kMaxReportBytes = size_t{64} << 20;          // of bench --out, before it is replaced
inline constexpr size_t kMaxDeviceSpecBytes = size_t{1} << 20;       // seven numbers
inline constexpr size_t kMaxChoicesBytes = size_t{64} << 20;         // of HSTUJIT_FROZEN: 1 KB for each key
inline constexpr size_t kMaxRecordingBytes = size_t{256} << 20;      // of HSTUJIT_RECORD: 1 KB for each miss
inline constexpr size_t kMaxRecordedBytes = kMaxRecordingBytes / 2;  // written there, by any number of writers at once
inline constexpr size_t kMaxLengthsBytes = size_t{256} << 20;        // one number a line: 2^25 sequences and more

}  // namespace hstujit
