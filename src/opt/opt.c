#include "opt/opt.h"

void p2o_opt(Graph *g)
{
    p2o_opt_dce(g);
}
