# cmake -DMODULE=<operators.cmake> -DROOT=<tree> -P check_operators.cmake
cmake_minimum_required(VERSION 3.25)
include(${MODULE})
hstujit_check_operators(${ROOT})
