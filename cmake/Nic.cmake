# The soft RNIC as a provider for other people's programs: core/rnic and core/nic in one shared library that shows
# libibverbs' functions, to be preloaded (tidemark run).
file(GLOB nic_sources CONFIGURE_DEPENDS core/nic/*.c core/rnic/*.c)
list(REMOVE_ITEM nic_sources ${PROJECT_SOURCE_DIR}/core/rnic/link_sim.c)
list(APPEND nic_sources core/pmem/hardware.c)
add_library(tidemark_nic OBJECT ${nic_sources})
set_target_properties(tidemark_nic PROPERTIES C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
target_link_libraries(tidemark_nic PRIVATE tidemark_flags PkgConfig::ISAL)

add_library(tidemark_preload SHARED $<TARGET_OBJECTS:tidemark_nic>)
set_target_properties(tidemark_preload PROPERTIES OUTPUT_NAME tidemark-verbs
	LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_link_libraries(tidemark_preload PRIVATE tidemark_flags PkgConfig::ISAL pthread)
# Complete, and never unloaded: a program that closes it would leave a thread behind in it.
set(nic_link_options -Wl,-z,defs -Wl,-z,nodelete)
# A message passes many small functions of many files.
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT TIDEMARK_SANITIZE)
	target_compile_options(tidemark_nic PRIVATE -flto -ffat-lto-objects)
	# In place of the -fno-lto that other programs get.
	set_target_properties(tidemark_preload PROPERTIES LINK_OPTIONS "-flto=auto;${nic_link_options}")
else()
	target_link_options(tidemark_preload PRIVATE ${nic_link_options})
endif()
install(TARGETS tidemark_preload LIBRARY DESTINATION lib/tidemark)

# The same as a libibverbs.so.1 to be found first (LD_LIBRARY_PATH), for programs that load it by name. The name of the
# version for drivers is that of the system's library: its programs ask for it.
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
add_library(tidemark_libibverbs SHARED $<TARGET_OBJECTS:tidemark_nic>)
set_target_properties(tidemark_libibverbs PROPERTIES OUTPUT_NAME ibverbs SOVERSION 1
	LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINK_DEPENDS ${ibverbs_map})
target_link_libraries(tidemark_libibverbs PRIVATE tidemark_flags PkgConfig::ISAL pthread)
target_link_options(tidemark_libibverbs PRIVATE ${nic_link_options} -Wl,--version-script=${ibverbs_map})
install(TARGETS tidemark_libibverbs LIBRARY DESTINATION lib/tidemark/lib NAMELINK_SKIP)

# What of it the command line needs, too: settings, rules of faults, the net's directory.
set(nic_shared core/nic/config.c core/nic/faults.c core/nic/net_dir.c core/nic/page.c)
target_sources(tidemark PRIVATE ${nic_shared})
