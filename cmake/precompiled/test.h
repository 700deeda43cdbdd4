// Headers that nearly every test without MLIR includes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmake/precompiled/base.h"
