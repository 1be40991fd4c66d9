/* A mechanism as a unit for co-simulation: instances, steps, inputs, outputs and states.

   steps.c has the translated time steps, data.h the arrays of the mechanism. fmi2.c and fmi3.c
   include this file. The value references are 0 ... INPUTS - 1 for the inputs, then those of the
   outputs, and INPUTS + OUTPUTS for the time. */

#include "steps.c"

#include "data.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

typedef enum { OK, WARNING, DISCARD, ERROR_, FATAL, PENDING } Status;
typedef unsigned int Reference;

/* What an importing program saves and restores: the state and the inputs of the next step. */
typedef struct {
    double state[STATE_SIZE], inputs[INPUTS + 1];
} Values;

typedef struct Unit {
    Values values, before; /* before: at the beginning of a communication step */
    double scratch[SCRATCH_SIZE];
    uint64_t addresses[ARRAYS];
    void (*report)(struct Unit *unit, Status status, const char *message);
    void *environment, *logger;
    char name[];
} Unit;

static Status failed(Unit *unit, Status status, const char *message)
{
    unit->report(unit, status, message);
    return status;
}

/* Take a step (0), adapt accelerations to changed inputs (1), or compute the outputs (2). */
static int64_t run(Unit *unit, uint64_t action)
{
    int64_t result = 0;
    char *message = NULL;
    uint32_t status = mechanism_run(
        (char *)&result, (char *)&message, (char *)unit->addresses, (char *)SHAPES, action);
    return status == 0 ? result : -1; /* not enough memory */
}

static void restart(Unit *unit)
{
    memset(&unit->values, 0, sizeof unit->values);
    memset(unit->scratch, 0, sizeof unit->scratch);
    for (size_t k = 0; k < sizeof STATE_PLACES / sizeof *STATE_PLACES; k++)
        unit->values.state[STATE_PLACES[k]] = STATE_NUMBERS[k];
    for (size_t k = 0; k < sizeof SCRATCH_PLACES / sizeof *SCRATCH_PLACES; k++)
        unit->scratch[SCRATCH_PLACES[k]] = SCRATCH_NUMBERS[k];
    for (int k = 0; k < INPUTS; k++)
        unit->values.inputs[k] = unit->values.state[INPUT_PLACES[k]];
}

static Unit *create(const char *name, const char *identifier)
{
    if (strcmp(identifier, IDENTIFIER) != 0)
        return NULL;
    Unit *unit = calloc(1, sizeof(Unit) + strlen(name) + 1);
    if (!unit)
        return NULL;
    strcpy(unit->name, name);
    for (int k = 0; k < ARRAYS; k++) {
        const void *buffers[] = {INDICES, CONSTANTS, unit->values.state, unit->scratch};
        unit->addresses[k] = (uint64_t)(uintptr_t)((const double *)buffers[BUFFERS[k]] + STARTS[k]);
    }
    restart(unit);
    return unit;
}

static Status get(Unit *unit, const Reference references[], size_t count, double values[])
{
    for (size_t k = 0; k < count; k++) {
        Reference r = references[k];
        if (r < INPUTS)
            values[k] = unit->values.inputs[r];
        else if (r < INPUTS + OUTPUTS)
            values[k] = unit->values.state[OUTPUTS_START + r - INPUTS];
        else if (r == INPUTS + OUTPUTS)
            values[k] = unit->values.state[TIME_PLACE];
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
    double count = floor(step / DT + 0.5);
    int64_t result = 0;
    int changed = 0;
    if (!(count >= 1) || !(fabs(count * DT - step) <= 1e-6 * step))
        return failed(unit, DISCARD, "the step is not a multiple of the step of the unit");
    for (int k = 0; k < INPUTS; k++) {
        double *number = &unit->values.state[INPUT_PLACES[k]], value = unit->values.inputs[k];
        if (!isfinite(value) || (value < 0.0 && INPUT_SIGNS[k]))
            return failed(unit, DISCARD, "an input is not finite, or negative where it must not be");
        changed |= *number != value;
    }
    unit->before = unit->values;
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
    unit->values = unit->before;
    return failed(
        unit, DISCARD,
        result < 0    ? "not enough memory"
        : result == 1 ? "the step does not converge: a singular position, or inputs that jump"
                      : "the iteration matrix is singular: a singular position of the mechanism");
}

static Status copy_state(Unit *unit, void **state)
{
    if (!*state && !(*state = malloc(sizeof(Values))))
        return failed(unit, ERROR_, "not enough memory");
    memcpy(*state, &unit->values, sizeof(Values));
    return OK;
}

static Status state_from(Unit *unit, const void *bytes, size_t size, void **state)
{
    if (size != sizeof(Values))
        return failed(unit, ERROR_, "the state belongs to another unit");
    if (!*state && !(*state = malloc(sizeof(Values))))
        return failed(unit, ERROR_, "not enough memory");
    memcpy(*state, bytes, sizeof(Values));
    return OK;
}
