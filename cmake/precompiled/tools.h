// Headers that nearly every command of the tool includes.
#pragma once

#include <CLI/CLI.hpp>

#include "cmake/precompiled/base.h"
