/* A mechanism as the model of a unit: inputs, outputs and time steps.

   steps.c has the translated time steps, data.h the arrays of the mechanism. The value references
   are 0 ... INPUTS - 1 for the inputs, then those of the outputs, and INPUTS + OUTPUTS for the
   time. */

#include "steps.c"

#include "data.h"

/* What an importing program saves and restores: the state and the inputs of the next step. */
typedef struct {
    double state[STATE_SIZE], inputs[INPUTS + 1];
} Values;

typedef struct {
    Values before; /* at the beginning of a communication step */
    double scratch[SCRATCH_SIZE];
    uint64_t addresses[ARRAYS];
} Memory;

#include "unit.c"

/* Take a step (0), adapt accelerations to changed inputs (1), or compute the outputs (2). */
static int64_t run(Unit *unit, uint64_t action)
{
    int64_t result = 0;
    char *message = NULL;
    uint32_t status = mechanism_run(
        (char *)&result, (char *)&message, (char *)unit->memory.addresses, (char *)SHAPES, action);
    return status == 0 ? result : -1; /* not enough memory */
}

static void restart(Unit *unit)
{
    memset(&unit->values, 0, sizeof unit->values);
    memset(unit->memory.scratch, 0, sizeof unit->memory.scratch);
    for (size_t k = 0; k < sizeof STATE_PLACES / sizeof *STATE_PLACES; k++)
        unit->values.state[STATE_PLACES[k]] = STATE_NUMBERS[k];
    for (size_t k = 0; k < sizeof SCRATCH_PLACES / sizeof *SCRATCH_PLACES; k++)
        unit->memory.scratch[SCRATCH_PLACES[k]] = SCRATCH_NUMBERS[k];
    for (int k = 0; k < INPUTS; k++)
        unit->values.inputs[k] = unit->values.state[INPUT_PLACES[k]];
    for (int k = 0; k < ARRAYS; k++) {
        const void *buffers[] = {INDICES, CONSTANTS, unit->values.state, unit->memory.scratch};
        unit->memory.addresses[k] =
            (uint64_t)(uintptr_t)((const double *)buffers[BUFFERS[k]] + STARTS[k]);
    }
}

static double time_of(const Unit *unit) { return unit->values.state[TIME_PLACE]; }

static Status get(Unit *unit, const Reference references[], size_t count, double values[])
{
    for (size_t k = 0; k < count; k++) {
        Reference r = references[k];
        if (r < INPUTS)
            values[k] = unit->values.inputs[r];
        else if (r < INPUTS + OUTPUTS)
            values[k] = unit->values.state[OUTPUTS_START + r - INPUTS];
        else if (r == INPUTS + OUTPUTS)
            values[k] = time_of(unit);
        else
            return failed(unit, ERROR_, "unknown value reference");
    }
    return OK;
}

static Status set(Unit *unit, const Reference references[], size_t count, const double values[])
{
    for (size_t k = 0; k < count; k++) {
        if (references[k] >= INPUTS)
            return failed(unit, ERROR_, "only inputs can be set");
        unit->values.inputs[references[k]] = values[k];
    }
    return OK;
}

/* Take steps; a step that fails is discarded, and the unit keeps its state. */
static Status advance(Unit *unit, double step)
{
    double count = steps_in(step);
    int64_t result = 0;
    int changed = 0;
    if (count == 0)
        return failed(unit, DISCARD, "the step is not a multiple of the step of the unit");
    for (int k = 0; k < INPUTS; k++) {
        double *number = &unit->values.state[INPUT_PLACES[k]], value = unit->values.inputs[k];
        if (!isfinite(value) || (value < 0.0 && INPUT_SIGNS[k]))
            return failed(unit, DISCARD, "an input is not finite, or negative where it must not be");
        changed |= *number != value;
    }
    unit->memory.before = unit->values;
    for (int k = 0; k < INPUTS; k++)
        unit->values.state[INPUT_PLACES[k]] = unit->values.inputs[k];
    if (changed)
        result = run(unit, 1);
    for (; result == 0 && count > 0; count--)
        result = run(unit, 0);
    if (result == 0)
        result = run(unit, 2);
    if (result == 0)
        return OK;
    unit->values = unit->memory.before;
    return failed(
        unit, DISCARD,
        result < 0    ? "not enough memory"
        : result == 1 ? "the step does not converge: a singular position, or inputs that jump"
                      : "the iteration matrix is singular: a singular position of the mechanism");
}
