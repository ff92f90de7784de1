# Targets for fuzzers that make inputs themselves (fuzz/). Not part of `make`, which
# builds the program only.
#
# fuzz_afl is a plain program unless afl-clang-fast is the compiler. fuzz_libfuzzer needs clang and its
# fuzzer runtime. So do those of the readers, fuzz_wire and fuzz_mad (the soft RNIC's parsers),
# fuzz_trace, fuzz_ops, fuzz_log (of pmemcheck) and fuzz_recording; without it they are plain programs
# that run files.
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
endif()

# fuzz_reader(NAME SOURCE...): the sources are compiled with the counters of coverage; what else they need is as it is
# everywhere.
function(fuzz_reader name)
	add_executable(fuzz_${name} fuzz/${name}.c ${ARGN})
	if(TIDEMARK_LIBFUZZER)
		target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
		target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
	else()
		target_sources(fuzz_${name} PRIVATE fuzz/files.c core/text/text.c)
	endif()
	target_link_libraries(fuzz_${name} PRIVATE tidemark_flags)
endfunction()
fuzz_reader(wire core/provider/link/wire.c core/provider/base/engine.c core/rnic/transport/packet.c core/rnic/opcode.c core/hardware/profile.c
	core/text/text.c)
target_link_libraries(fuzz_wire PRIVATE PkgConfig::ISAL)
fuzz_reader(mad core/cm/mad.c)
set(workload_sources scenarios/workload/workload.c scenarios/workload/ops_file.c core/text/text.c)
fuzz_reader(trace checker/trace/trace.c checker/trace/trace_write.c faultinject/words.c faultinject/deviation.c
	${workload_sources})
fuzz_reader(ops ${workload_sources})
set(pm_sources fuzz/pm.c checker/logs/pm_log.c checker/logs/pm_replay.c checker/logs/pmemcheck_read.c
	checker/logs/pmemcheck_write.c core/text/text.c)
fuzz_reader(log ${pm_sources})
fuzz_reader(recording checker/logs/recording_read.c ${pm_sources})
foreach(name trace ops log recording)
	target_link_libraries(fuzz_${name} PRIVATE tidemark_sim)
endforeach()
add_custom_target(fuzz_readers DEPENDS fuzz_wire fuzz_mad fuzz_trace fuzz_ops fuzz_log fuzz_recording)
