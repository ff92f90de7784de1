# Each test_*.c below tests/ is one program, with Check; the test_*.sh are listed below.
#
# `make test` runs the tests that have no label "all". Those with the label "reduced" have a smaller budget there, and
# `make test-sanitized` leaves them out (tests/checker/explore/budget.h); in `make test-all` they run whole, and with the
# sanitizers with the smaller budget. Those with the label "all" need a virtual machine or programs of others, wait for time to
# pass, or take long: `make test-all` runs them. The lists are at the end. A test that has only a few cases that wait for time
# to pass gives these the tag "real_time", which `make test` leaves out, and is "reduced".
# Check's limits, also those that a test sets itself, are for an empty machine: here five times as long.
set(test_environment CK_DEFAULT_TIMEOUT=100 CK_TIMEOUT_MULTIPLIER=5 UBSAN_OPTIONS=print_stacktrace=1)

function(tidemark_test name)
	add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
	set_tests_properties(${name} PROPERTIES TIMEOUT 1200 SKIP_RETURN_CODE 77
		ENVIRONMENT "${test_environment}")
endfunction()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS tests/test_*.c)
foreach(source ${test_sources})
	cmake_path(GET source STEM name)
	add_executable(${name} ${source})
	target_link_libraries(${name} PRIVATE tidemark_flags PkgConfig::CHECK)
	# What is long in a test is in what it tests; optimised, its code takes three times as long to compile. With the
	# sanitizers it is: unoptimised frames leave marks on the stacks of tasks that were abandoned.
	if(TIDEMARK_SANITIZE)
		set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -O1)
	else()
		set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -O0)
	endif()
	if(name MATCHES "^test_(link_udp|faults)$")
		# In real time: the live NIC's ground instead of the sim world's.
		target_sources(${name} PRIVATE $<TARGET_OBJECTS:tidemark_nic>)
		target_link_libraries(${name} PRIVATE PkgConfig::ISAL pthread)
	elseif(name MATCHES "^test_nic_")
		# A verbs program like others', on the soft RNIC of its process.
		target_link_libraries(${name} PRIVATE tidemark_preload)
		if(NOT name STREQUAL test_nic_cm) # has two nets
			target_sources(${name} PRIVATE tests/core/provider/nic_fabric.c tests/core/provider/nic_side.c)
		endif()
	else()
		target_link_libraries(${name} PRIVATE tidemark_sim)
	endif()
	if(name STREQUAL test_examine)
		target_sources(${name} PRIVATE tests/core/live/live_sim.c)
	endif()
	if(name MATCHES "^test_(rnic.*|qp_ex|cq|srq|mw|commit)$")
		target_sources(${name} PRIVATE tests/core/rnic/rnic_world.c)
	endif()
	if(name STREQUAL test_litmus_thousands)
		target_sources(${name} PRIVATE tests/litmus/generator.c tests/litmus/program.c tests/litmus/slow_model.c)
	endif()
	if(name STREQUAL test_long_copy)
		target_sources(${name} PRIVATE core/provider/base/long_copy.c)
	endif()
	if(name STREQUAL test_wire)
		target_sources(${name} PRIVATE core/provider/link/wire.c)
		target_link_libraries(${name} PRIVATE PkgConfig::ISAL)
	endif()
	if(name STREQUAL test_nic_cm) # makes packets, too, as others would
		target_sources(${name} PRIVATE core/provider/link/wire.c core/cm/mad.c core/provider/base/engine.c core/rnic/transport/packet.c core/rnic/opcode.c core/hardware/profile.c core/text/text.c)
		target_link_libraries(${name} PRIVATE PkgConfig::ISAL)
	endif()
	if(name STREQUAL test_mad)
		target_sources(${name} PRIVATE core/cm/mad.c)
	endif()
	if(name STREQUAL test_summary)
		target_sources(${name} PRIVATE report/summary.c report/holds_on.c report/matrix.c report/report.c report/report_cells.c report/report_end.c
			report/rows/baseline.c report/rows/blame_rows.c report/case.c report/conclusion.c report/report_tree.c report/text.c report/tree.c report/output.c report/terminal.c report/written.c)
	endif()
	if(name STREQUAL test_terminal)
		target_sources(${name} PRIVATE report/terminal.c)
	endif()
	if(name STREQUAL test_bugs)
		set(parts 4)
		if(NOT TIDEMARK_SANITIZE) # one part takes the ways of all
			list(APPEND parts 1 2 3)
		endif()
		foreach(part ${parts})
			tidemark_test(${name}_${part} ${name} ${part} 4)
		endforeach()
	elseif(name STREQUAL test_bug_causes)
		if(NOT TIDEMARK_SANITIZE) # a quarter of an hour with; test_causes takes its ways
			tidemark_test(${name} ${name} ${PROJECT_SOURCE_DIR})
		endif()
	else()
		tidemark_test(${name} ${name})
	endif()
endforeach()

# test_tracer runs two sources as compiled by each compiler at each level, with the
# flags of stores but for the level: plain code, and library functions and intrinsics.
set(variants)
file(GLOB store_headers CONFIGURE_DEPENDS core/libc/include/*.h)
foreach(compiler gcc clang)
	find_program(TRACER_${compiler} ${compiler})
	if(NOT TRACER_${compiler})
		continue()
	endif()
	foreach(subject core/pmem/tracer_subject core/libc/libc_subject)
	foreach(level O0 O2)
		cmake_path(GET subject FILENAME variant)
		set(variant ${variant}_${compiler}_${level})
		set(object ${PROJECT_BINARY_DIR}/${variant}.o)
		add_custom_command(OUTPUT ${object}
			COMMAND ${TRACER_${compiler}} -std=gnu17 -D_GNU_SOURCE -I${PROJECT_SOURCE_DIR} -Wall -fPIC
				-${level} ${store_include} ${store_flags} ${store_flags_${compiler}} -c ${PROJECT_SOURCE_DIR}/tests/${subject}.c -o ${object}.raw
			COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${store_symbols}
				--redefine-sym tracer_subject=${variant} ${object}.raw ${object}
			DEPENDS tests/${subject}.c tests/core/pmem/tracer_subject.h ${store_symbols} ${store_headers}
			COMMENT "Compiling the tracer's subject: ${variant}" VERBATIM)
		target_sources(test_tracer PRIVATE ${object})
		string(APPEND variants " X(${variant})")
	endforeach()
	endforeach()
endforeach()
target_compile_definitions(test_tracer PRIVATE "TRACER_VARIANTS=${variants}")

# Stores do not free their memory when their machine dies, and here no simulator does it for them.
set_property(TEST test_cause_requests APPEND PROPERTY ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)

tidemark_test(test_stores_lint ${PROJECT_SOURCE_DIR}/tests/core/stores/test_stores_lint.sh
	$<TARGET_FILE:tidemark_core> ${store_symbols} ${PROJECT_SOURCE_DIR}/core/stores/kept.syms
	${PROJECT_SOURCE_DIR}/core/stores/refused.syms ${stores_archive})
set_property(TEST test_stores_lint APPEND PROPERTY ENVIRONMENT
	CC=${CMAKE_C_COMPILER} NM=${CMAKE_NM} OBJDUMP=${CMAKE_OBJDUMP} OBJCOPY=${CMAKE_OBJCOPY})
if(CMAKE_C_COMPILER_ID STREQUAL GNU) # it reads the sources alone, by an option of gcc's
	tidemark_test(test_store_names ${PROJECT_SOURCE_DIR}/tests/core/stores/test_store_names.sh ${PROJECT_SOURCE_DIR})
	set_property(TEST test_store_names APPEND PROPERTY ENVIRONMENT CC=${CMAKE_C_COMPILER})
endif()
tidemark_test(test_walls ${PROJECT_SOURCE_DIR}/tests/test_walls.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
set_property(TEST test_walls APPEND PROPERTY ENVIRONMENT CC=${CMAKE_C_COMPILER} NM=${CMAKE_NM})
# A process keeps the soft RNIC's objects until it ends; a child that a test forks cannot free them.
foreach(live test_link_udp test_nic_cm test_nic_device test_nic_events test_nic_keys
	test_nic_objects test_nic_memory test_nic_paths test_nic_refused test_nic_types)
	# The soft RNIC handles memory faults itself, so the sanitizer must not.
	set_property(TEST ${live} APPEND PROPERTY
		ENVIRONMENT ASAN_OPTIONS=detect_leaks=0:handle_segv=0:handle_sigbus=0:use_sigaltstack=0)
endforeach()
# These unmap memory under the RNIC, to see it notice; the sanitizer knows better than the fault that comes of it.
if(TIDEMARK_SANITIZE)
	set_tests_properties(test_nic_memory test_nic_types PROPERTIES DISABLED TRUE)
endif()
if(NOT TIDEMARK_SANITIZE) # a sanitizer's library would have to be the program's, too, and it adds symbols
	tidemark_test(test_nic_symbols ${PROJECT_SOURCE_DIR}/tests/core/provider/test_nic_symbols.sh
		$<TARGET_FILE:tidemark_libibverbs> $<TARGET_FILE:tidemark_preload> ${SYSTEM_IBVERBS})
	tidemark_test(test_nic_devinfo ${PROJECT_SOURCE_DIR}/tests/core/provider/test_nic_devinfo.sh $<TARGET_FILE:tidemark_preload>
		$<TARGET_FILE_DIR:tidemark_libibverbs>)
	find_library(SYSTEM_RDMACM rdmacm)
	tidemark_test(test_nic_cm_programs ${PROJECT_SOURCE_DIR}/tests/core/provider/test_nic_cm_programs.sh
		$<TARGET_FILE:tidemark_preload> $<TARGET_FILE:tidemark_librdmacm> ${SYSTEM_RDMACM})
endif()
set(replayed ${PROJECT_SOURCE_DIR}/tests/checker/trace/test_traces.sh $<TARGET_FILE:tidemark>)
tidemark_test(test_traces ${replayed} ${PROJECT_SOURCE_DIR}/tests/traces 1)
tidemark_test(test_mended ${replayed} ${PROJECT_SOURCE_DIR}/tests/mended 4)
tidemark_test(test_event_trace ${PROJECT_SOURCE_DIR}/tests/checker/trace/test_event_trace.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR}/tests/traces
	${PROJECT_SOURCE_DIR}/tests/causes)
tidemark_test(test_crashtest_html ${PROJECT_SOURCE_DIR}/tests/report/test_crashtest_html.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR}/tests)
tidemark_test(test_causes ${PROJECT_SOURCE_DIR}/tests/checker/trace/test_causes.sh $<TARGET_FILE:tidemark>)
tidemark_test(test_html ${PROJECT_SOURCE_DIR}/tests/report/test_html.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR}/tests)
if(NOT TIDEMARK_SANITIZE) # it records a program
	tidemark_test(test_images_html ${PROJECT_SOURCE_DIR}/tests/report/test_images_html.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
endif()
tidemark_test(test_sarif ${PROJECT_SOURCE_DIR}/tests/report/test_sarif.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
tidemark_test(test_diff ${PROJECT_SOURCE_DIR}/tests/report/test_diff.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
set_target_properties(bench_images PROPERTIES EXCLUDE_FROM_ALL OFF)
# Whether its three ways to boot an image agree.
tidemark_test(test_bench_images bench_images efactory/recover_next w)
tidemark_test(test_litmus ${PROJECT_SOURCE_DIR}/tests/checker/models/test_litmus.sh $<TARGET_FILE:tidemark>
	${PROJECT_SOURCE_DIR}/docs/litmus.md)
tidemark_test(test_litmus_suite ${PROJECT_SOURCE_DIR}/tests/checker/models/test_litmus_suite.sh $<TARGET_FILE:tidemark>
	${PROJECT_SOURCE_DIR}/scenarios/litmus)
tidemark_test(test_figures_cli ${PROJECT_SOURCE_DIR}/tests/checker/models/test_figures.sh $<TARGET_FILE:tidemark>
	${PROJECT_SOURCE_DIR}/docs/figures.md)
tidemark_test(test_times_cli ${PROJECT_SOURCE_DIR}/tests/checker/models/test_times.sh $<TARGET_FILE:tidemark>
	${PROJECT_SOURCE_DIR}/docs/figures.md ${PROJECT_SOURCE_DIR}/docs/choosing.md)
tidemark_test(test_count_cli ${PROJECT_SOURCE_DIR}/tests/checker/models/test_count.sh $<TARGET_FILE:tidemark>)
tidemark_test(test_images_cli ${PROJECT_SOURCE_DIR}/tests/cli/test_images.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
tidemark_test(test_merge ${PROJECT_SOURCE_DIR}/tests/cli/test_merge.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
set_property(TEST test_merge APPEND PROPERTY ENVIRONMENT CC=${CMAKE_C_COMPILER})
tidemark_test(test_cut ${PROJECT_SOURCE_DIR}/tests/checker/live/test_cut.sh $<TARGET_FILE:tidemark> $<TARGET_FILE:test_live_pm>)
tidemark_test(test_examine_cli ${PROJECT_SOURCE_DIR}/tests/checker/live/test_examine.sh $<TARGET_FILE:tidemark>
	$<TARGET_FILE:test_examine>)
tidemark_test(test_defaults ${PROJECT_SOURCE_DIR}/tests/docs/test_defaults.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
tidemark_test(test_docs ${PROJECT_SOURCE_DIR}/tests/docs/test_docs.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
tidemark_test(test_where ${PROJECT_SOURCE_DIR}/tests/docs/test_where.py ${PROJECT_SOURCE_DIR})
tidemark_test(test_systems ${PROJECT_SOURCE_DIR}/tests/docs/test_systems.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
tidemark_test(test_systems_events ${PROJECT_SOURCE_DIR}/tests/docs/test_systems_events.py $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
tidemark_test(test_verbs ${PROJECT_SOURCE_DIR}/tests/scenarios/test_verbs.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
if(NOT TIDEMARK_SANITIZE) # a program with sanitizers is not installed
	tidemark_test(test_build ${PROJECT_SOURCE_DIR}/tests/install/test_build.sh ${PROJECT_SOURCE_DIR})
	tidemark_test(test_install ${PROJECT_SOURCE_DIR}/tests/install/test_install.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
	tidemark_test(test_installed ${PROJECT_SOURCE_DIR}/tests/install/test_installed.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
	tidemark_test(test_manuals ${PROJECT_SOURCE_DIR}/tests/install/test_manuals.sh $<TARGET_FILE:tidemark> ${manuals})
	tidemark_test(test_completion_bash ${PROJECT_SOURCE_DIR}/tests/install/test_completion_bash.sh $<TARGET_FILE:tidemark>
		${PROJECT_SOURCE_DIR}/cli/tidemark-completion.bash)
	find_program(ZSH zsh)
	if(ZSH)
		tidemark_test(test_completion_zsh ${ZSH} -f ${PROJECT_SOURCE_DIR}/tests/install/test_completion_zsh.zsh
			$<TARGET_FILE:tidemark> ${PROJECT_BINARY_DIR}/completion)
		set_tests_properties(test_completion_zsh PROPERTIES LABELS all)
	endif()
	set_tests_properties(test_installed test_manuals test_completion_bash PROPERTIES LABELS all)
endif()
# Processes on the soft RNIC; programs like any other that uses libibverbs.
add_executable(nic_death tests/core/provider/nic_death.c)
target_link_libraries(nic_death PRIVATE tidemark_flags PkgConfig::IBVERBS)
add_dependencies(nic_death tidemark_preload)
if(NOT TIDEMARK_SANITIZE) # a sanitizer's runtime is not in the programs of others
	tidemark_test(test_record ${PROJECT_SOURCE_DIR}/tests/cli/test_record.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_sparse ${PROJECT_SOURCE_DIR}/tests/cli/test_sparse.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_record_ack ${PROJECT_SOURCE_DIR}/tests/cli/test_record_ack.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_try ${PROJECT_SOURCE_DIR}/tests/cli/test_try.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_found ${PROJECT_SOURCE_DIR}/tests/cli/test_found.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_programs ${PROJECT_SOURCE_DIR}/tests/docs/test_programs.py $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_not_seen ${PROJECT_SOURCE_DIR}/tests/cli/test_not_seen.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_announced ${PROJECT_SOURCE_DIR}/tests/cli/test_announced.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	if(TIDEMARK_DEMANGLE)
		tidemark_test(test_images_names ${PROJECT_SOURCE_DIR}/tests/cli/test_images_names.sh $<TARGET_FILE:tidemark>
			${PROJECT_SOURCE_DIR})
	endif()
	foreach(program log list pmem2 rpma)
		tidemark_test(test_record_${program} ${PROJECT_SOURCE_DIR}/tests/interop/test_record_programs.sh $<TARGET_FILE:tidemark>
			${PROJECT_SOURCE_DIR} ${program})
	endforeach()
	tidemark_test(test_record_store ${PROJECT_SOURCE_DIR}/tests/cli/test_record_store.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_record_flush ${PROJECT_SOURCE_DIR}/tests/cli/test_record_flush.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_recordbench ${PROJECT_SOURCE_DIR}/scripts/recordbench --build ${PROJECT_BINARY_DIR} --runs 1 --only "start log")
	tidemark_test(test_coverage_cli ${PROJECT_SOURCE_DIR}/tests/cli/test_coverage.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_own_store ${PROJECT_SOURCE_DIR}/tests/cli/test_own_store.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_trouble ${PROJECT_SOURCE_DIR}/tests/cli/test_trouble.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_images_server ${PROJECT_SOURCE_DIR}/tests/cli/test_images_server.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	set_property(TEST test_images_server APPEND PROPERTY ENVIRONMENT CC=${CMAKE_C_COMPILER})
	tidemark_test(test_own_operations ${PROJECT_SOURCE_DIR}/tests/cli/test_own_operations.sh $<TARGET_FILE:tidemark>
		${PROJECT_SOURCE_DIR})
	tidemark_test(test_servers ${PROJECT_SOURCE_DIR}/tests/cli/test_servers.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_pairs ${PROJECT_SOURCE_DIR}/tests/cli/test_pairs.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	foreach(name run stat pcap_live loss_live nic_death live_nic)
		tidemark_test(test_${name} ${PROJECT_SOURCE_DIR}/tests/core/provider/test_${name}.sh $<TARGET_FILE:tidemark>)
	endforeach()
	tidemark_test(test_live_smoke ${PROJECT_SOURCE_DIR}/tests/core/live/test_live_smoke.sh $<TARGET_FILE:tidemark>)
	tidemark_test(test_live_servers ${PROJECT_SOURCE_DIR}/tests/core/live/test_live_servers.sh $<TARGET_FILE:tidemark>)
	tidemark_test(test_live_shape ${PROJECT_SOURCE_DIR}/tests/core/live/test_live_shape.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
endif()
if(TIDEMARK_SANITIZE) # a search takes the same steps as without, and the plain build makes them all
	set(few few)
endif()
if(NOT TIDEMARK_SANITIZE) # programs on the soft RNIC, and a live pool
	tidemark_test(test_blank ${PROJECT_SOURCE_DIR}/tests/cli/test_blank.sh $<TARGET_FILE:tidemark>)
	tidemark_test(test_bad_inputs ${PROJECT_SOURCE_DIR}/tests/cli/test_bad_inputs.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
endif()
tidemark_test(test_baseline ${PROJECT_SOURCE_DIR}/tests/cli/test_baseline.sh $<TARGET_FILE:tidemark>)
tidemark_test(test_wrong_tree ${PROJECT_SOURCE_DIR}/tests/cli/test_wrong_tree.sh $<TARGET_FILE:tidemark>)
tidemark_test(test_cli ${PROJECT_SOURCE_DIR}/tests/cli/test_cli.sh $<TARGET_FILE:tidemark> ${few})
set(leave_off ${PROJECT_SOURCE_DIR}/tests/cli/test_leave_off.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
if(TIDEMARK_SANITIZE)
	tidemark_test(test_leave_off ${leave_off} matrix interrupted signals full)
else()
	tidemark_test(test_leave_off ${leave_off} matrix interrupted signals fail_fast full terminal)
	tidemark_test(test_leave_off_timed ${leave_off} timed)
endif()
if(CMAKE_C_COMPILER_ID STREQUAL Clang)
	# Without clang's fuzzer runtime there is no such program, and the test is skipped.
	tidemark_test(test_libfuzzer ${PROJECT_SOURCE_DIR}/tests/checker/hunt/test_libfuzzer.sh ${PROJECT_BINARY_DIR}/fuzz_libfuzzer)
	if(TIDEMARK_LIBFUZZER)
		tidemark_test(test_fuzz_wire fuzz_wire -runs=300000 -max_len=256 -seed=1)
		tidemark_test(test_fuzz_mad fuzz_mad -runs=100000 -max_len=256 -seed=1)
	endif()
endif()
tidemark_test(test_readers ${PROJECT_SOURCE_DIR}/tests/checker/hunt/test_readers.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
tidemark_test(test_input ${PROJECT_SOURCE_DIR}/tests/checker/hunt/test_input.sh $<TARGET_FILE:fuzz_afl> $<TARGET_FILE:tidemark>)
if(NOT TIDEMARK_SANITIZE) # searches that take the same steps as without, which the plain build makes; what has little C in it
	tidemark_test(test_newer_verbs ${PROJECT_SOURCE_DIR}/tests/core/rnic/test_newer_verbs.sh ${VERBS_INCLUDE})
	set_property(TEST test_newer_verbs APPEND PROPERTY ENVIRONMENT CC=${CMAKE_C_COMPILER} CMAKE=${CMAKE_COMMAND})
	tidemark_test(test_ci ${PROJECT_SOURCE_DIR}/tests/docs/test_ci.py $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_html_browser ${PROJECT_SOURCE_DIR}/tests/report/test_html_browser.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR}/tests)
	tidemark_test(test_tidepm ${PROJECT_SOURCE_DIR}/tests/valgrind/test_tidepm.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_budget_cli ${PROJECT_SOURCE_DIR}/tests/cli/test_budget.sh $<TARGET_FILE:tidemark>)
	tidemark_test(test_often ${PROJECT_SOURCE_DIR}/tests/checker/trace/test_often.sh $<TARGET_FILE:tidemark>)
	tidemark_test(test_taxonomy_all ${PROJECT_SOURCE_DIR}/tests/checker/models/test_taxonomy_all.sh $<TARGET_FILE:tidemark>
		${PROJECT_SOURCE_DIR})
	tidemark_test(test_pmreorder_cli ${PROJECT_SOURCE_DIR}/tests/cli/test_pmreorder.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_taxonomy_cli ${PROJECT_SOURCE_DIR}/tests/checker/models/test_taxonomy.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_test(test_claims_all ${PROJECT_SOURCE_DIR}/tests/checker/hunt/test_claims_all.sh $<TARGET_FILE:tidemark>)
	set_tests_properties(test_claims_all PROPERTIES LABELS all COST 200)
	tidemark_test(test_systems_contracts ${PROJECT_SOURCE_DIR}/tests/docs/test_systems_contracts.py $<TARGET_FILE:tidemark>
		${PROJECT_SOURCE_DIR})
	set_tests_properties(test_systems_contracts PROPERTIES LABELS all COST 200)
	# A line "# test: OPTION..." of the list says how its store is tested; "# test: no", that it is not.
	file(GLOB ablations CONFIGURE_DEPENDS core/stores/*/ablation.txt)
	foreach(list ${ablations})
		file(STRINGS ${list} options REGEX "^# test: ")
		string(REGEX REPLACE "^# test: " "" options "${options}")
		cmake_path(GET list PARENT_PATH folder)
		cmake_path(GET folder FILENAME store)
		if(NOT options STREQUAL no)
			separate_arguments(options)
			tidemark_test(test_ablate_${store} ${PROJECT_SOURCE_DIR}/tests/checker/hunt/test_ablate.sh $<TARGET_FILE:tidemark>
				${store} ${options})
			set_tests_properties(test_ablate_${store} PROPERTIES LABELS all COST 90 TIMEOUT 1200)
		endif()
	endforeach()
endif()
# Tests that boot guests; one at a time, and first of all, so that others run beside them. Skipped without QEMU. With the
# sanitizers only that in which calls fail: it takes the other ways of live stores as well.
function(tidemark_guest_test name)
	tidemark_test(${name} ${PROJECT_SOURCE_DIR}/tests/again.sh ${ARGN})
	set_tests_properties(${name} PROPERTIES RESOURCE_LOCK guest COST 1000 TIMEOUT 1200 LABELS all)
endfunction()

if(TIDEMARK_SANITIZE)
	tidemark_guest_test(test_fiu ${PROJECT_SOURCE_DIR}/tests/core/live/test_fiu.sh $<TARGET_FILE:tidemark>)
else()
	tidemark_guest_test(test_live_guest ${PROJECT_SOURCE_DIR}/tests/core/live/test_live.sh $<TARGET_FILE:tidemark> erda ca forca)
	tidemark_guest_test(test_vm ${PROJECT_SOURCE_DIR}/tests/vm/test_vm.sh)
	tidemark_guest_test(test_vmtest ${PROJECT_SOURCE_DIR}/tests/vm/test_vmtest.sh $<TARGET_FILE:tidemark>)
	tidemark_guest_test(test_vmcommit ${PROJECT_SOURCE_DIR}/tests/vm/test_vmcommit.sh $<TARGET_FILE:tidemark>)
	tidemark_guest_test(test_vm_servers ${PROJECT_SOURCE_DIR}/tests/vm/test_vm_servers.sh $<TARGET_FILE:tidemark>)
	tidemark_guest_test(test_vmdiff ${PROJECT_SOURCE_DIR}/tests/vm/test_vmdiff.sh $<TARGET_FILE:tidemark> ${PROJECT_SOURCE_DIR})
	tidemark_guest_test(test_vm_interop ${PROJECT_SOURCE_DIR}/vm/interop --build ${PROJECT_BINARY_DIR})
	tidemark_guest_test(test_vmsoak ${PROJECT_SOURCE_DIR}/vm/soak --tidemark $<TARGET_FILE:tidemark> --store efactory
		--time 15 --every 3 --seed 1 --out ${PROJECT_BINARY_DIR}/soak)
endif()

# label(LABEL NAME...): test_NAME. With the sanitizers some tests are not there.
function(label label)
	foreach(name ${ARGN})
		if(TEST test_${name})
			set_tests_properties(test_${name} PROPERTIES LABELS ${label})
		elseif(NOT TIDEMARK_SANITIZE)
			message(SEND_ERROR "label(${label} ${name}): there is no test_${name}")
		endif()
	endforeach()
endfunction()
label(reduced leave_off bugs_4 claims cli dpor count explore fails fuzz lengths litmus_thousands merge nic_device nic_types remotelog search soak taxonomy_all tree)
# A browser.
label(all ci html_browser)
# Programs of others.
label(all live_nic loss_live nic_cm_programs nic_death nic_devinfo pcap_live run stat)
# Many small programs, each under Valgrind, or judged in all the ways there are; a live store.
label(all images_server own_store pmreorder_cli record_list record_log record_pmem2 record_rpma record_store tidepm)
# Seeded bugs, but for a quarter of them.
label(all bug_causes bugs_1 bugs_2 bugs_3)
# A whole campaign, twice; one after the other; 20,000 schedules.
label(all budget_cli often own_operations)
# Real time: a retransmission, a timeout, a process that is given a moment.
label(all faults leave_off_timed link_udp live live_shape load nic_cm nic_events nic_objects rendezvous)
if(TIDEMARK_SANITIZE) # they take the same steps without, and long with
	label(all baseline claims crashtest_html diff libfuzzer sarif)
endif()

# The longest ones first, so that none of them is left alone at the end. In seconds, roughly.
foreach(cost taxonomy_all:60 bug_causes:160 images_server:20 bugs_1:60 bugs_2:40 bugs_3:40 bugs_4:20 fuzz:40 cli:40 own_store:30 bad_inputs:20 leave_off:15 claims:5 remotelog:10 explore:20
		html:8 html_browser:60 taxonomy_cli:12 search:14 fails:15 nic_cm:35 nic_cm_programs:16 nic_death:60 pcap_live:12 record_store:40 pmreorder_cli:13
		litmus_thousands:30 live_nic:11 load:9 verbs:9 nic_objects:8 dpor:6 merge:12 baselines:6 rendezvous:6 newer_verbs:5 tidepm:12)
	string(REPLACE ":" ";" cost ${cost})
	list(GET cost 0 name)
	list(GET cost 1 seconds)
	if(TEST test_${name})
		set_tests_properties(test_${name} PROPERTIES COST ${seconds})
	endif()
endforeach()
