// Catch2 version 2 builds its main function here, once; version 3 brings it as a library.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
