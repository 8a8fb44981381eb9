/* torch.vmap as files have it: markers around a region, and what makes values enter and leave it.
 *
 * The program is typed as it is written, values without their hidden axes.  Then the region is
 * carried out: calls become those on tensors that have these axes (batch.h), and the markers go. */
#ifndef P2O_ATEN_VMAP_H
#define P2O_ATEN_VMAP_H

#include "aten/ops.h"
#include "ir/bind.h"

#define P2O_VMAP_MARK   "torch._functorch.predispatch::"
#define P2O_VMAP_ENTERS P2O_VMAP_MARK "_add_batch_dim"
#define P2O_VMAP_LEAVES P2O_VMAP_MARK "_remove_batch_dim"

/* p has types; so it has after.  Programs without a region are left alone.  false after
 * diagnostics: operators that cannot be batched, all of them. */
bool p2o_vmap(Ops *o, Program *p, Bindings *b);

/* Each value that enters a region says how long the region's axis is: done before the rules run,
 * so that these hold its sizes against it. */
void p2o_vmap_sizes(Program *p);

#endif
