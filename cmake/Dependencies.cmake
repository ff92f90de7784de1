# Libraries and tools that are not ours. What is missing is named in one message,
# with the command that installs it (package names: packages.txt).
find_package(PkgConfig)
set(missing)

# tidemark_find(NAME pkg-config-module): the imported target PkgConfig::NAME.
function(tidemark_find name module)
	if(PKG_CONFIG_FOUND)
		pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
	endif()
	if(NOT ${name}_FOUND)
		set(missing ${missing} ${module} PARENT_SCOPE)
	endif()
endfunction()

if(NOT PKG_CONFIG_FOUND)
	list(APPEND missing pkg-config)
endif()
tidemark_find(ISAL libisal)
tidemark_find(XXHASH libxxhash)
tidemark_find(JANSSON jansson)
tidemark_find(DW libdw)
tidemark_find(ZSTD libzstd)
# For the live world. In the sim world no function of these is called.
tidemark_find(IBVERBS libibverbs)
# Only its header: the soft RNIC defines its functions.
tidemark_find(RDMACM librdmacm)
tidemark_find(PMEM libpmem)
tidemark_find(FIU libfiu)
if(BUILD_TESTING)
	tidemark_find(CHECK check)
endif()

# Headers that stores include: in both worlds.
find_path(VERBS_INCLUDE infiniband/verbs.h)
find_path(PMEM_INCLUDE libpmem.h)
# Only librdmacm's header; the soft RNIC defines its functions.
find_path(RDMACM_INCLUDE rdma/rdma_cma.h)
# Boost.Context has neither a pkg-config file nor a C header; fiber.c declares its two functions.
find_library(BOOST_CONTEXT NAMES libboost_context.a boost_context)
foreach(found VERBS_INCLUDE PMEM_INCLUDE RDMACM_INCLUDE BOOST_CONTEXT)
	if(NOT ${found})
		string(TOLOWER ${found} name)
		list(APPEND missing ${name})
	endif()
endforeach()
# Objects are linked to one object by GNU's linker: LLVM's keeps groups of sections, as clang's sanitizers make them, and
# of two objects with the same group a linker drops one.
find_program(BFD_LD ld.bfd)
if(NOT BFD_LD)
	list(APPEND missing ld.bfd)
endif()
if(NOT CMAKE_OBJCOPY)
	list(APPEND missing objcopy)
endif()

if(missing)
	list(JOIN missing ", " missing)
	execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/deps --command
		OUTPUT_VARIABLE command OUTPUT_STRIP_TRAILING_WHITESPACE)
	message(FATAL_ERROR "Not found: ${missing}. On Debian or Ubuntu, this installs all that is needed:\n"
		"  ${command}\nThen configure again with: cmake --fresh")
endif()

# Whether <infiniband/verbs.h> has FLUSH; if not, core/verbs_compat.h has.
include(CheckStructHasMember)
set(CMAKE_REQUIRED_INCLUDES ${VERBS_INCLUDE})
check_struct_has_member("struct ibv_qp_ex" wr_flush infiniband/verbs.h TIDEMARK_VERBS_FLUSH LANGUAGE C)
unset(CMAKE_REQUIRED_INCLUDES)
if(TIDEMARK_VERBS_FLUSH)
	add_compile_definitions(TM_VERBS_FLUSH)
endif()

# The names of C++ and Rust in reports of tidemark images: without libiberty they are printed as the linker has them.
find_path(IBERTY_INCLUDE demangle.h PATH_SUFFIXES libiberty)
find_library(IBERTY NAMES iberty)
set(TIDEMARK_DEMANGLE ON)
if(NOT IBERTY OR NOT IBERTY_INCLUDE)
	set(TIDEMARK_DEMANGLE OFF)
	message(STATUS "Symbols of C++ and Rust stay mangled: there is no libiberty (package libiberty-dev)")
endif()
