# Each tests/test_*.c is one program.
set(test_environment CK_DEFAULT_TIMEOUT=120 UBSAN_OPTIONS=print_stacktrace=1)

function(tidemark_test name)
	add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
	set_tests_properties(${name} PROPERTIES TIMEOUT 240 SKIP_RETURN_CODE 77
		ENVIRONMENT "${test_environment}")
endfunction()

file(GLOB test_sources CONFIGURE_DEPENDS tests/test_*.c)
foreach(source ${test_sources})
	cmake_path(GET source STEM name)
	add_executable(${name} ${source})
	target_link_libraries(${name} PRIVATE tidemark_flags PkgConfig::CHECK)
	if(name STREQUAL test_erda)
		# Brings its own stand-ins for all that is below the store.
		file(GLOB erda_sources CONFIGURE_DEPENDS core/stores/erda/*.c)
		target_sources(${name} PRIVATE ${erda_sources} core/stores/kv.c)
		target_link_libraries(${name} PRIVATE PkgConfig::ISAL)
	else()
		target_link_libraries(${name} PRIVATE tidemark_sim stores_sim)
	endif()
	tidemark_test(${name} ${name})
endforeach()
