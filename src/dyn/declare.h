/* What the user says about sizes: names, numbers and ranges for the inputs' axes.
 *
 * A name puts a symbol on an axis even where the capture fixed it; inference then decides whether
 * the program allows it.  Where the capture has a symbol already, that symbol takes the name. */
#ifndef P2O_DYN_DECLARE_H
#define P2O_DYN_DECLARE_H

#include "ir/bind.h"
#include "ir/program.h"

/* "input:batch,seq,10": per axis a name, a number, an expression of names (past+seq), or ? to leave
 * it as captured.  Brackets and spaces are allowed.  Sets the type of that input.  false after a
 * diagnostic. */
bool p2o_declare_input(Program *p, Bindings *b, Str spec);

/* One axis; negative counts from the end.  An empty name makes one: "input_0". */
bool p2o_declare_axis(Program *p, Bindings *b, Str input, int64_t axis, Str name);

/* "seq=128" pins, "seq=1..512" states a range (either end may be left out).  Before any declaration
 * of that name is made: ranges guide simplification. */
bool p2o_declare_range(Program *p, Bindings *b, Str spec);

/* After all names: what the axes are that were declared as expressions. */
void p2o_declare_expressions(Program *p, Bindings *b);

/* "the inputs are x past", for advice. */
const char *p2o_input_list(const Program *p);

/* Inputs that are ints and may be sizes: their symbols take the inputs' names. */
void p2o_declare_ints(Program *p, Bindings *b);

/* The types that inference starts from: what the file recorded, for every input not declared. */
void p2o_declare_rest(Program *p);

#endif
