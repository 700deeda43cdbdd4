#include "runtime/driver/launch_marks.h"

namespace hstujit {

LaunchMarks::LaunchMarks(const CudaDriver& driver) : driver_(driver) {
  for (Mark& mark : marks_) {
    if (driver_.event_create(&mark.event, cuda::kEventDisableTiming) == cuda::kSuccess) continue;
    mark.event = nullptr;
    forever_.store(true, std::memory_order_relaxed);
  }
}

void LaunchMarks::mark(cuda::Stream stream) {
  if (forever_.load(std::memory_order_relaxed)) return;
  if (!record(stream)) forever_.store(true, std::memory_order_release);
}

bool LaunchMarks::record(cuda::Stream stream) {
  cuda::CaptureStatus status = cuda::kCaptureNone;
  if (driver_.stream_is_capturing(stream, &status) != cuda::kSuccess || status != cuda::kCaptureNone) return false;
  // By identity: a new stream may have the address of one that was destroyed before its work was done.
  unsigned long long identity = 0;
  if (driver_.stream_get_id == nullptr || driver_.stream_get_id(stream, &identity) != cuda::kSuccess) return false;
  const uint64_t wanted = uint64_t{identity} + 1;
  for (Mark& mark : marks_) {
    uint64_t known = mark.stream.load(std::memory_order_acquire);
    if (known == 0 && mark.stream.compare_exchange_strong(known, wanted)) known = wanted;
    if (known != wanted) continue;
    // Threads that launch on one stream record one event. The last record follows each of their launches.
    return driver_.event_record(mark.event, stream) == cuda::kSuccess;
  }
  return false;
}

bool LaunchMarks::are_done() const {
  if (forever_.load(std::memory_order_acquire)) return false;
  const RelaxedCapture relaxed(driver_);
  for (const Mark& mark : marks_) {
    if (mark.stream.load(std::memory_order_acquire) == 0) break;
    if (driver_.event_query(mark.event) != cuda::kSuccess) return false;
  }
  return true;
}

void LaunchMarks::destroy_events() {
  for (Mark& mark : marks_) {
    if (mark.event != nullptr) driver_.event_destroy(mark.event);
    mark.event = nullptr;
  }
}

RelaxedCapture::RelaxedCapture(const CudaDriver& driver) : driver_(driver) {
  driver_.thread_exchange_capture_mode(&mode_);
}

RelaxedCapture::~RelaxedCapture() { driver_.thread_exchange_capture_mode(&mode_); }

}  // namespace hstujit
