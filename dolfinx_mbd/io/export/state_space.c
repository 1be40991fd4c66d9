/* A linear system x' = A x + B u, y = C x + D u as the model of a unit.

   For inputs u that are constant over a step of length DT, x(t + DT) = PHI x(t) + GAMMA u holds
   exactly. data.h defines the sizes, DT, IDENTIFIER and the matrices row by row. The value
   references are 0 ... INPUTS - 1 for the inputs, then those of the outputs, and INPUTS + OUTPUTS
   for the time. */

#include "data.h"

typedef struct {
    double x[STATES], u[INPUTS], time;
} Values;
typedef char Memory; /* not used */

#include "unit.c"

/* Add a matrix times a vector to the result, which has one entry per row. */
static void add_product(const double *A, int rows, int columns, const double *v, double *result)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            result[i] += A[i * columns + j] * v[j];
}

static void restart(Unit *unit) { memset(&unit->values, 0, sizeof(Values)); }

static double time_of(const Unit *unit) { return unit->values.time; }

static Status get(Unit *unit, const Reference references[], size_t count, double values[])
{
    double y[OUTPUTS] = {0};
    add_product(C, OUTPUTS, STATES, unit->values.x, y);
    add_product(D, OUTPUTS, INPUTS, unit->values.u, y);
    for (size_t k = 0; k < count; k++) {
        Reference r = references[k];
        if (r > INPUTS + OUTPUTS)
            return failed(unit, ERROR_, "unknown value reference");
        values[k] = r < INPUTS ? unit->values.u[r] : r < INPUTS + OUTPUTS ? y[r - INPUTS] : time_of(unit);
    }
    return OK;
}

static Status set(Unit *unit, const Reference references[], size_t count, const double values[])
{
    for (size_t k = 0; k < count; k++) {
        if (references[k] >= INPUTS)
            return failed(unit, ERROR_, "only inputs can be set");
        unit->values.u[references[k]] = values[k];
    }
    return OK;
}

static Status advance(Unit *unit, double step)
{
    double count = steps_in(step);
    if (count == 0)
        return failed(unit, DISCARD, "the step is not a multiple of the step of the unit");
    for (; count > 0; count--) {
        double x[STATES] = {0};
        add_product(PHI, STATES, STATES, unit->values.x, x);
        add_product(GAMMA, STATES, INPUTS, unit->values.u, x);
        memcpy(unit->values.x, x, sizeof x);
        unit->values.time += DT;
    }
    return OK;
}
