# GoogleTest: the C++ tests, which are built on request only.
# Found:   as the system's package, else fetched from its repository at the version below.
# Version: 1.11 or newer; 1.14.0 when fetched.
# Licence: BSD-3-Clause.
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  include(FetchContent)
  FetchContent_Declare(googletest GIT_REPOSITORY https://github.com/google/googletest.git GIT_TAG v1.14.0)
  FetchContent_MakeAvailable(googletest)
  add_library(GTest::gtest_main ALIAS gtest_main)
endif()
include(GoogleTest)
