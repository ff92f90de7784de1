# Targets for fuzzers that make inputs themselves (fuzz/). Not part of `make`, which
# builds the program only.
#
# fuzz_afl is a plain program unless afl-clang-fast is the compiler. fuzz_libfuzzer,
# fuzz_wire and fuzz_mad (the soft RNIC's parsers) need clang and its fuzzer runtime.
include(CheckCSourceCompiles)

add_executable(fuzz_afl fuzz/afl.c fuzz/target.c)
target_link_libraries(fuzz_afl PRIVATE tidemark_flags tidemark_sim)

if(CMAKE_C_COMPILER_ID STREQUAL Clang)
	set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
	check_c_source_compiles("
		#include <stddef.h>
		#include <stdint.h>
		int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) { (void)bytes; (void)n; return 0; }
		" TIDEMARK_LIBFUZZER)
	unset(CMAKE_REQUIRED_FLAGS)
endif()
if(TIDEMARK_LIBFUZZER)
	add_executable(fuzz_libfuzzer fuzz/libfuzzer.c fuzz/target.c)
	target_compile_options(fuzz_libfuzzer PRIVATE -fsanitize=fuzzer)
	target_link_options(fuzz_libfuzzer PRIVATE -fsanitize=fuzzer)
	target_link_libraries(fuzz_libfuzzer PRIVATE tidemark_flags tidemark_sim)
	add_executable(fuzz_wire fuzz/wire.c core/provider/link/wire.c core/provider/base/engine.c core/rnic/transport/packet.c core/rnic/opcode.c)
	target_compile_options(fuzz_wire PRIVATE -fsanitize=fuzzer)
	target_link_options(fuzz_wire PRIVATE -fsanitize=fuzzer)
	target_link_libraries(fuzz_wire PRIVATE tidemark_flags PkgConfig::ISAL)
	add_executable(fuzz_mad fuzz/mad.c core/provider/cm/mad.c)
	target_compile_options(fuzz_mad PRIVATE -fsanitize=fuzzer)
	target_link_options(fuzz_mad PRIVATE -fsanitize=fuzzer)
	target_link_libraries(fuzz_mad PRIVATE tidemark_flags)
endif()
