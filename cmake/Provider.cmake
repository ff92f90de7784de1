# The soft RNIC as a provider for other people's programs: core/rnic and core/provider in one shared library that shows
# libibverbs' and librdmacm's functions, to be preloaded (tidemark run).
file(GLOB nic_sources CONFIGURE_DEPENDS core/provider/nic.c core/provider/base/*.c core/provider/link/*.c core/provider/verbs/*.c
	core/provider/cm/listeners.c core/cm/mad.c core/provider/cm/qp1.c core/rnic/*.c core/rnic/*/*.c)
list(REMOVE_ITEM nic_sources ${PROJECT_SOURCE_DIR}/core/rnic/transport/link_sim.c
	${PROJECT_SOURCE_DIR}/core/rnic/sim_ground.c)
list(FILTER nic_sources EXCLUDE REGEX "/core/rnic/host/")
list(APPEND nic_sources core/hardware/hardware.c core/hardware/mutant.c core/hardware/profile.c core/text/text.c)
file(GLOB cm_sources CONFIGURE_DEPENDS core/provider/cm/cm*.c core/cm/*.c)
list(REMOVE_ITEM cm_sources ${PROJECT_SOURCE_DIR}/core/cm/mad.c)
list(REMOVE_ITEM nic_sources ${PROJECT_SOURCE_DIR}/core/provider/verbs/node.c ${PROJECT_SOURCE_DIR}/core/provider/verbs/sysfs.c)
add_library(tidemark_nic OBJECT ${nic_sources})
set_target_properties(tidemark_nic PROPERTIES C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
target_link_libraries(tidemark_nic PRIVATE tidemark_flags PkgConfig::ISAL)
# No undefined symbols, and never unloaded: the NIC's thread still runs after a program has closed the library.
set(complete -Wl,-z,defs)
if(CMAKE_C_COMPILER_ID STREQUAL Clang AND TIDEMARK_SANITIZE)
	set(complete) # clang's sanitizers are in the program, not in a library
endif()
set(nic_link ${complete} -Wl,-z,nodelete)
add_library(tidemark_cm OBJECT ${cm_sources})
set_target_properties(tidemark_cm PROPERTIES C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
target_link_libraries(tidemark_cm PRIVATE tidemark_flags)
target_compile_definitions(tidemark_cm PRIVATE TM_CM_PROVIDER) # librdmacm's names: core/cm/calls.h
target_include_directories(tidemark_cm SYSTEM PRIVATE ${RDMACM_INCLUDE})

# Only in the library to be preloaded: it comes before libc, so that it can replace functions of it.
add_library(tidemark_node OBJECT core/provider/verbs/node.c core/provider/verbs/sysfs.c)
set_target_properties(tidemark_node PROPERTIES C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
target_link_libraries(tidemark_node PRIVATE tidemark_flags)

# A message passes many small functions of many files: they are optimised as a whole, once for both libraries, as one object
# (cmake/whole). Tests link the other objects.
set(nic $<TARGET_OBJECTS:tidemark_nic>)
if(TIDEMARK_WHOLE)
	add_library(tidemark_nic_lto OBJECT ${nic_sources})
	set_target_properties(tidemark_nic_lto PROPERTIES C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
	target_link_libraries(tidemark_nic_lto PRIVATE tidemark_flags PkgConfig::ISAL)
	target_compile_options(tidemark_nic_lto PRIVATE -flto -fno-fat-lto-objects)
	set(nic ${PROJECT_BINARY_DIR}/nic_whole.o)
	set(nic_callers $<TARGET_OBJECTS:tidemark_cm> $<TARGET_OBJECTS:tidemark_node>)
	add_custom_command(OUTPUT ${nic}
		COMMAND ${PROJECT_SOURCE_DIR}/cmake/whole needs ${CMAKE_NM} ${nic}.needs ${nic_callers}
		COMMAND ${PROJECT_SOURCE_DIR}/cmake/whole link ${CMAKE_C_COMPILER} ${CMAKE_LINKER} ${nic} ${nic}.needs -shared -fPIC
			$<TARGET_OBJECTS:tidemark_nic_lto>
		DEPENDS cmake/whole tidemark_nic_lto tidemark_cm tidemark_node ${nic_callers} $<TARGET_OBJECTS:tidemark_nic_lto>
		COMMAND_EXPAND_LISTS COMMENT "Optimising the soft RNIC as a whole" VERBATIM)
	add_custom_target(tidemark_nic_whole DEPENDS ${nic})
endif()

add_library(tidemark_preload SHARED ${nic} $<TARGET_OBJECTS:tidemark_cm>
	$<TARGET_OBJECTS:tidemark_node>)
set_target_properties(tidemark_preload PROPERTIES OUTPUT_NAME tidemark-verbs
	LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} LINK_OPTIONS "${nic_link}")
target_link_libraries(tidemark_preload PRIVATE tidemark_flags PkgConfig::ISAL pthread)

# The same as a libibverbs.so.1 that is found first (LD_LIBRARY_PATH), for programs that load it by name. The symbol
# version for drivers has the name that the system's library uses, because its programs ask for it.
set(IBVERBS_PRIVATE IBVERBS_PRIVATE_34)
find_library(SYSTEM_IBVERBS ibverbs)
if(SYSTEM_IBVERBS)
	file(STRINGS ${SYSTEM_IBVERBS} private REGEX "^IBVERBS_PRIVATE_[0-9]+$" LIMIT_COUNT 1)
	if(private)
		set(IBVERBS_PRIVATE ${private})
	endif()
endif()
set(ibverbs_map ${PROJECT_BINARY_DIR}/libibverbs.map)
configure_file(cmake/libibverbs.map.in ${ibverbs_map} @ONLY)
add_library(tidemark_libibverbs SHARED ${nic})
set_target_properties(tidemark_libibverbs PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME ibverbs SOVERSION 1
	LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINK_DEPENDS ${ibverbs_map}
	LINK_OPTIONS "${nic_link};-Wl,--version-script=${ibverbs_map}")
target_link_libraries(tidemark_libibverbs PRIVATE tidemark_flags PkgConfig::ISAL pthread)

if(TIDEMARK_WHOLE)
	add_dependencies(tidemark_preload tidemark_nic_whole)
	add_dependencies(tidemark_libibverbs tidemark_nic_whole)
endif()

# The connection manager as a librdmacm.so.1, which finds the soft RNIC in libibverbs.so.1. It contains what it needs of
# the shared files; the linker drops their functions that only the RNIC uses.
set(rdmacm_map ${PROJECT_SOURCE_DIR}/cmake/librdmacm.map)
add_library(tidemark_librdmacm SHARED $<TARGET_OBJECTS:tidemark_cm> core/provider/base/config.c core/provider/base/faults.c core/rnic/opcode.c core/text/text.c core/provider/cm/listeners.c
	core/cm/mad.c core/provider/base/fabric_dir.c)
set_target_properties(tidemark_librdmacm PROPERTIES OUTPUT_NAME rdmacm SOVERSION 1 C_VISIBILITY_PRESET hidden
	LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINK_DEPENDS ${rdmacm_map})
target_link_libraries(tidemark_librdmacm PRIVATE tidemark_flags tidemark_libibverbs pthread)
target_compile_options(tidemark_librdmacm PRIVATE -ffunction-sections)
target_link_options(tidemark_librdmacm PRIVATE ${complete} -Wl,--gc-sections -Wl,--version-script=${rdmacm_map})

# Files that the command line needs, too: settings, rules of faults, the fabric's directory, stats pages.
set(nic_shared core/provider/base/config.c core/provider/base/faults.c core/provider/base/fabric_dir.c core/provider/base/stats_page.c)
target_sources(tidemark_cli PRIVATE ${nic_shared})

# What the soft RNIC costs: a verbs program like any other, for make nicbench.
add_executable(bench_nic tests/bench/bench_nic.c)
target_link_libraries(bench_nic PRIVATE tidemark_flags PkgConfig::IBVERBS)
