# The verbs programs (scenarios/verbs/): compiled once, linked twice. One object has the soft RNIC for its
# verbs, by the renaming that stores have; the other calls the system's libibverbs. Only the table of each is visible
# from outside.
file(GLOB verbs_sources CONFIGURE_DEPENDS scenarios/verbs/*.c)
add_library(verbs_raw OBJECT ${verbs_sources})
target_link_libraries(verbs_raw PRIVATE tidemark_flags)
target_compile_options(verbs_raw PRIVATE -O1)
set(verbs_objects)
foreach(world sim live)
	set(object ${PROJECT_BINARY_DIR}/verbs_${world}.o)
	# GNU objcopy keeps a symbol by its new name, LLVM's by its old one.
	set(rename --redefine-sym verbs_table=verbs_${world} --keep-global-symbol=verbs_${world}
		--keep-global-symbol=verbs_table)
	if(world STREQUAL sim)
		list(APPEND rename --redefine-syms=${store_symbols})
	endif()
	add_custom_command(OUTPUT ${object}
		COMMAND ${BFD_LD} -r --force-group-allocation -o ${object}.raw $<TARGET_OBJECTS:verbs_raw>
		COMMAND ${CMAKE_OBJCOPY} ${rename} ${object}.raw ${object}
		DEPENDS verbs_raw $<TARGET_OBJECTS:verbs_raw> ${store_symbols}
		COMMENT "Linking the verbs programs: ${world}" COMMAND_EXPAND_LISTS VERBATIM)
	list(APPEND verbs_objects ${object})
endforeach()
add_library(verbs_programs STATIC ${verbs_objects})
set_target_properties(verbs_programs PROPERTIES LINKER_LANGUAGE C)
target_link_libraries(verbs_programs PUBLIC tidemark_core)
