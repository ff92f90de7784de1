# The Valgrind tool tidepm and the script that runs it, tidemark-valgrind: only where Debian's package valgrind, or one that has
# the same, is installed, for x86-64. What is built is linked with that version of Valgrind, and belongs to it.
#
# A Valgrind tool is a program without the C library, at an address of its own. It is compiled by one command, so that nothing
# of how the rest is compiled gets into it: no sanitizer, no link-time optimisation.
find_path(VALGRIND_INCLUDE pub_tool_tooliface.h PATH_SUFFIXES valgrind)
find_file(VALGRIND_CORE libcoregrind-amd64-linux.a PATHS /usr/lib /usr/lib64 PATH_SUFFIXES x86_64-linux-gnu/valgrind valgrind)
find_path(VALGRIND_TOOLS vgpreload_core-amd64-linux.so
	PATHS /usr/libexec/valgrind /usr/lib/x86_64-linux-gnu/valgrind /usr/lib/valgrind)
find_program(VALGRIND valgrind)
set(TIDEMARK_VALGRIND ON)
foreach(found VALGRIND_INCLUDE VALGRIND_CORE VALGRIND_TOOLS VALGRIND)
	if(NOT ${found})
		set(TIDEMARK_VALGRIND OFF)
	endif()
endforeach()
if(NOT TIDEMARK_VALGRIND)
	message(STATUS "No tidemark-valgrind: there is no Valgrind for x86-64 with its headers and libraries (package valgrind)")
	return()
endif()

cmake_path(GET VALGRIND_CORE PARENT_PATH valgrind_libraries)
set(valgrind_tools ${PROJECT_BINARY_DIR}/valgrind)
set(valgrind_tool ${valgrind_tools}/tidepm-amd64-linux)
file(GLOB valgrind_sources CONFIGURE_DEPENDS valgrind/*.c)
list(APPEND valgrind_sources ${PROJECT_SOURCE_DIR}/core/instruction.c)
# Valgrind reads the tool's lines, too, and 3.19 cannot read clang's DWARF 5.
set(valgrind_flags -std=gnu17 -O2 -gdwarf-4 -Wall -Wextra -Wno-unused-command-line-argument -DVGA_amd64 -DVGO_linux -DVGP_amd64_linux -I${PROJECT_SOURCE_DIR} -isystem ${VALGRIND_INCLUDE}
	-fno-builtin -fno-stack-protector -fno-strict-aliasing -fno-pie)
if(TIDEMARK_WERROR)
	list(APPEND valgrind_flags -Werror)
endif()
add_custom_command(OUTPUT ${valgrind_tool}
	COMMAND ${CMAKE_COMMAND} -E make_directory ${valgrind_tools}
	COMMAND ${CMAKE_COMMAND} -E create_symlink ${VALGRIND_TOOLS}/default.supp ${valgrind_tools}/default.supp
	COMMAND ${CMAKE_COMMAND} -E create_symlink ${VALGRIND_TOOLS}/vgpreload_core-amd64-linux.so
		${valgrind_tools}/vgpreload_core-amd64-linux.so
	COMMAND ${CMAKE_C_COMPILER} ${valgrind_flags} -static -no-pie -nostdlib -u _start -Wl,-Ttext-segment=0x58000000
		${valgrind_sources} ${VALGRIND_CORE} ${valgrind_libraries}/libvex-amd64-linux.a
		${valgrind_libraries}/libgcc-sup-amd64-linux.a -lgcc -o ${valgrind_tool}
	DEPENDS ${valgrind_sources} valgrind/tidepm.h core/instruction.h ${VALGRIND_CORE}
	COMMENT "Building the Valgrind tool tidepm" VERBATIM)
add_custom_target(tidepm ALL DEPENDS ${valgrind_tool})
add_dependencies(tidemark tidepm)

set(tidemark_lib lib/tidemark) # as in Install.cmake
configure_file(valgrind/tidepm.in ${PROJECT_BINARY_DIR}/tidemark-valgrind @ONLY
	FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
