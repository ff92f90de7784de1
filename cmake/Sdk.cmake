# What `tidemark cc` needs to make a store outside of this tree: build/sdk, which an installation copies.
set(sdk ${PROJECT_BINARY_DIR}/sdk)
file(MAKE_DIRECTORY ${sdk}/include/tidemark)
foreach(family gcc clang)
	list(JOIN store_flags_${family} "\n" lines)
	list(JOIN store_flags "\n" common)
	file(CONFIGURE OUTPUT ${sdk}/flags.${family} CONTENT "-O0\n-fPIC\n-fno-plt\n${common}\n${lines}\n" @ONLY)
endforeach()
foreach(file cc live.renamed instructions.awk unknown cxx.c cxx.renamed object.c object.map new-store new/store.c new/store.cc new/servers.c new/Makefile new/crashtest.yml)
	configure_file(scripts/sdk/${file} ${sdk}/${file} COPYONLY)
endforeach()
# The headers of the store interface, which include one another by other names there; and what a recorded program includes.
foreach(header core/tidemark.h core/calls.h core/object.h core/rt/rt.h core/rt/config.h core/rdma_commit.h core/verbs_compat.h core/serve.h
		core/record/record.h)
	cmake_path(GET header FILENAME name)
	file(READ ${header} text)
	string(REGEX REPLACE "#include \"core/([a-z]+/)?([a-z_]+\\.h)\"" "#include <tidemark/\\2>" text "${text}")
	if(TIDEMARK_VERBS_FLUSH) # here the build says so, there it would not be known
		string(REPLACE "#define TM_VERBS_COMPAT_H\n" "#define TM_VERBS_COMPAT_H\n#define TM_VERBS_FLUSH 1\n" text "${text}")
	endif()
	file(CONFIGURE OUTPUT ${sdk}/include/tidemark/${name} CONTENT "${text}" @ONLY)
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
endforeach()
# Intrinsics are functions that the memory model sees.
file(GLOB intrinsics RELATIVE ${PROJECT_SOURCE_DIR}/core/libc/include CONFIGURE_DEPENDS core/libc/include/*.h)
foreach(header ${intrinsics})
	configure_file(core/libc/include/${header} ${sdk}/include/${header} COPYONLY)
endforeach()
configure_file(core/stores/sim.syms ${sdk}/symbols.renamed COPYONLY)
configure_file(core/stores/refused.syms ${sdk}/symbols.refused COPYONLY)

# What a loaded store calls of the program: its linker exports these names. A library has them, and those of libc and libm
# that a store may use, for the link that finds unknown ones.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS core/stores/sim.syms core/stores/kept.syms
	scripts/sdk/live.renamed)
file(STRINGS core/stores/sim.syms renamed REGEX "^[^#]")
file(STRINGS core/stores/kept.syms kept REGEX "^[^#*]+ [a-z]+$")
set(exported "{\n")
set(known "/* Made by cmake/Sdk.cmake. */\n")
set(store_needs)
foreach(line ${renamed} ${kept})
	string(REPLACE " " ";" words ${line})
	list(GET words 0 name)
	list(GET words 1 definer)
	if(NOT definer MATCHES "^(program|libc|libm)$")
		set(name ${definer}) # a line of sim.syms
		set(definer program)
	endif()
	string(APPEND known "void ${name}(void)\n{\n}\n")
	if(definer STREQUAL program)
		string(APPEND exported "\t${name};\n")
		string(APPEND store_needs "-Wl,-u,${name}\n")
	endif()
endforeach()
file(STRINGS scripts/sdk/live.renamed live)
foreach(line ${live}) # what a store for real hardware calls instead
	string(REGEX REPLACE ".* " "" name ${line})
	string(APPEND exported "\t${name};\n")
	string(APPEND store_needs "-Wl,-u,${name}\n")
endforeach()
file(CONFIGURE OUTPUT ${sdk}/exported.list CONTENT "${exported}};\n" @ONLY)
file(CONFIGURE OUTPUT ${sdk}/exported.needs CONTENT "${store_needs}" @ONLY)
file(CONFIGURE OUTPUT ${sdk}/known.c CONTENT "${known}" @ONLY)
add_custom_command(OUTPUT ${sdk}/known.so
	COMMAND ${CMAKE_C_COMPILER} -shared -fPIC -fno-builtin -w -o ${sdk}/known.so ${sdk}/known.c
	DEPENDS ${sdk}/known.c VERBATIM)
set(live_sources ${PROJECT_SOURCE_DIR}/scripts/sdk/live.c ${PROJECT_SOURCE_DIR}/core/record/exact/stores.c)
add_custom_command(OUTPUT ${sdk}/live.o
	COMMAND ${CMAKE_C_COMPILER} -O2 -w -fPIC -ftls-model=initial-exec -r -nostdlib -I${PROJECT_SOURCE_DIR} -o ${sdk}/live.o
		${live_sources}
	DEPENDS ${live_sources} core/record/record_hooks.h VERBATIM)
# And programs that are no stores: what they define themselves is not taken from there.
add_custom_command(OUTPUT ${sdk}/plain.o
	COMMAND ${CMAKE_C_COMPILER} -O2 -w -fPIC -DPLAIN -c -I${PROJECT_SOURCE_DIR} -o ${sdk}/plain.o
		${PROJECT_SOURCE_DIR}/scripts/sdk/live.c
	COMMAND ${CMAKE_OBJCOPY} --weaken ${sdk}/plain.o
	DEPENDS scripts/sdk/live.c core/record/record_hooks.h VERBATIM)
add_custom_target(sdk ALL DEPENDS ${sdk}/known.so ${sdk}/live.o ${sdk}/plain.o)
add_dependencies(tidemark sdk)
target_link_options(tidemark PRIVATE @${sdk}/exported.needs -Wl,--dynamic-list=${sdk}/exported.list)
target_link_libraries(tidemark PRIVATE ${CMAKE_DL_LIBS})
set_property(TARGET tidemark APPEND PROPERTY LINK_DEPENDS ${sdk}/exported.list)
