# The stores, as the sim world has them.
#
# A store is ordinary C against libibverbs and libpmem. For the sim world its
# sources are compiled with -fsanitize=thread, so that the compiler puts a call
# before each load and store (core/pmem/hooks.c has these functions; the
# sanitizer's own runtime is never linked), and the symbols of its objects are
# renamed (core/stores/sim.syms), so that libc, libpmem and the verbs are ours.
#
# -O0: the compiler neither merges nor drops stores, so a trace replays alike with
# every compiler. -fno-builtin: no copy is inlined without a hook. No vectors: clang
# has no hook for an access of more than 16 bytes (a -O after these flags would bring
# the vectors back). No calls at a function's beginning and end: they are
# not used. gcc warns that its sanitizer does not understand fences; ours does. Intrinsics are
# those of core/libc/include.
set(store_include -isystem ${PROJECT_SOURCE_DIR}/core/libc/include)
set(store_flags -g -fsanitize=thread -fno-builtin -fno-tree-vectorize -fno-tree-slp-vectorize
	-fno-stack-protector -U_FORTIFY_SOURCE -fno-omit-frame-pointer)
set(store_flags_gcc -Wno-tsan --param=tsan-instrument-func-entry-exit=0)
# clang leaves out the hook of a load whose place is stored to next (x |= 1), gcc does
# not; a run must have the same steps with both. Source lines are looked up by the
# address table that gcc always writes.
set(store_flags_clang -gdwarf-aranges -mllvm -tsan-instrument-func-entry-exit=0
	-mllvm -tsan-instrument-read-before-write)
list(JOIN store_flags_clang " " store_line_clang) # of a list, CMake would drop the second -mllvm
set(store_symbols ${PROJECT_SOURCE_DIR}/core/stores/sim.syms)

# A store is a folder below core/stores. Its code is all *.c there; what is expected of it, the known
# causes of what it breaks, and how often, what its papers claim and what it could do without stand beside the code. stores_built.h names the folders, and those texts for the
# assembler.
file(GLOB store_folders CONFIGURE_DEPENDS LIST_DIRECTORIES true core/stores/*)
file(GLOB store_texts CONFIGURE_DEPENDS core/stores/*/expected.txt core/stores/*/claims.txt
	core/stores/*/ablation.txt core/stores/*/causes.txt)
set(store_rows)
foreach(folder ${store_folders})
	if(NOT IS_DIRECTORY ${folder})
		continue()
	endif()
	cmake_path(GET folder FILENAME name)
	set(row "${name}")
	foreach(text expected claims ablation causes)
		set(incbin)
		if(EXISTS ${folder}/${text}.txt)
			set(incbin ".incbin \\\"${folder}/${text}.txt\\\"")
		endif()
		string(APPEND row ", \"${incbin}\"")
	endforeach()
	string(APPEND store_rows " \\\n\tX(${row})")
endforeach()
set(store_list ${PROJECT_BINARY_DIR}/stores_built.h)
file(CONFIGURE OUTPUT ${store_list} CONTENT
	"/* Made by cmake/Stores.cmake: name, expected.txt, claims.txt, ablation.txt, causes.txt. */\n#define STORES(X)${store_rows}\n" @ONLY)
set_source_files_properties(scenarios/stores.c scenarios/live_stores.c PROPERTIES
	INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR} OBJECT_DEPENDS "${store_list};${store_texts}")

file(GLOB store_sources CONFIGURE_DEPENDS core/stores/*.c core/stores/*/*.c)
add_library(stores_raw STATIC ${store_sources})
target_compile_options(stores_raw PRIVATE -Wall -Wextra $<$<BOOL:${TIDEMARK_WERROR}>:-Werror> -O0 ${store_include} ${store_flags}
	$<$<C_COMPILER_ID:GNU>:${store_flags_gcc}> "$<$<C_COMPILER_ID:Clang>:SHELL:${store_line_clang}>")

set(stores_archive ${PROJECT_BINARY_DIR}/libstores_sim.a)
add_custom_command(OUTPUT ${stores_archive}
	COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${store_symbols} $<TARGET_FILE:stores_raw> ${stores_archive}
	DEPENDS stores_raw ${store_symbols}
	COMMENT "Renaming the symbols of the stores" VERBATIM)
add_custom_target(stores_renamed DEPENDS ${stores_archive})
add_library(stores_sim STATIC IMPORTED GLOBAL)
set_target_properties(stores_sim PROPERTIES IMPORTED_LOCATION ${stores_archive})
target_link_libraries(stores_sim INTERFACE tidemark_core)
add_dependencies(stores_sim stores_renamed)
