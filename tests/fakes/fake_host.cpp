// A host library that a test dresses up, by variables of the environment: FAKE_HOST_ABI is the ABI that it says,
// FAKE_HOST_GENERATOR the generator. It makes no kernel.
#include <cstdio>
#include <cstdlib>

#include "compiler/host/host_api.h"

int hstujit_host_abi(void) {
  const char* const abi = std::getenv("FAKE_HOST_ABI");
  return abi != nullptr ? std::atoi(abi) : HSTUJIT_HOST_ABI;
}

const char* hstujit_host_generator(void) {
  const char* const digest = std::getenv("FAKE_HOST_GENERATOR");
  return digest != nullptr ? digest : "";
}

void* hstujit_host_create(const char*, char* error, size_t error_size) {
  std::snprintf(error, error_size, "the fake host backend makes nothing");
  return nullptr;
}

int hstujit_host_launch(void*, const HstujitHostValue*, size_t, char*, size_t) { return 0; }

void hstujit_host_destroy(void*) {}
