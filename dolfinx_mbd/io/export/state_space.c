/* A linear system x' = A x + B u, y = C x + D u as a unit for co-simulation, FMI 2.0.

   For inputs u that are constant over a step of length DT, x(t + DT) = PHI x(t) + GAMMA u holds
   exactly. matrices.h defines the sizes, DT, GUID and the matrices row by row. The value references
   are 0 ... INPUTS - 1 for the inputs and INPUTS ... INPUTS + OUTPUTS - 1 for the outputs. */

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "matrices.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* For static linking, compile with -DFMI2_FUNCTION_PREFIX=<model identifier>_ */
#ifdef FMI2_FUNCTION_PREFIX
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(function) JOIN(FMI2_FUNCTION_PREFIX, function)
#else
#define NAME(function) function
#endif
#define FUNCTION(function) EXPORT Status NAME(function)

typedef enum { OK, WARNING, DISCARD, ERROR_, FATAL, PENDING } Status;
typedef unsigned int Reference;

typedef struct {
    void (*logger)(void *, const char *, Status, const char *, const char *, ...);
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*step_finished)(void *, Status);
    void *environment;
} Callbacks;

typedef struct {
    double x[STATES], u[INPUTS];
} Values;

typedef struct {
    Values values;
    Callbacks callbacks;
    char name[];
} Unit;

static Status failed(Unit *unit, const char *message)
{
    if (unit->callbacks.logger)
        unit->callbacks.logger(
            unit->callbacks.environment, unit->name, ERROR_, "logStatusError", "%s", message);
    return ERROR_;
}

/* Add a matrix times a vector to the result, which has one entry per row. */
static void add_product(const double *A, int rows, int columns, const double *v, double *result)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            result[i] += A[i * columns + j] * v[j];
}

EXPORT const char *NAME(fmi2GetTypesPlatform)(void) { return "default"; }
EXPORT const char *NAME(fmi2GetVersion)(void) { return "2.0"; }

EXPORT void *NAME(fmi2Instantiate)(
    const char *name, int type, const char *guid, const char *resources, const Callbacks *callbacks,
    int visible, int logging)
{
    (void)resources, (void)visible, (void)logging;
    if (type != 1 || strcmp(guid, GUID) != 0) /* co-simulation only, with this description */
        return NULL;
    Unit *unit = calloc(1, sizeof(Unit) + strlen(name) + 1);
    if (!unit)
        return NULL;
    strcpy(unit->name, name);
    if (callbacks)
        unit->callbacks = *callbacks;
    return unit;
}

EXPORT void NAME(fmi2FreeInstance)(void *unit) { free(unit); }

FUNCTION(fmi2SetDebugLogging)(void *unit, int on, size_t count, const char *const categories[])
{
    (void)unit, (void)on, (void)count, (void)categories;
    return OK;
}

FUNCTION(fmi2SetupExperiment)(
    void *unit, int has_tolerance, double tolerance, double start, int has_stop, double stop)
{
    (void)unit, (void)has_tolerance, (void)tolerance, (void)start, (void)has_stop, (void)stop;
    return OK;
}

FUNCTION(fmi2EnterInitializationMode)(void *unit) { return unit ? OK : ERROR_; }
FUNCTION(fmi2ExitInitializationMode)(void *unit) { return unit ? OK : ERROR_; }
FUNCTION(fmi2Terminate)(void *unit) { return unit ? OK : ERROR_; }

FUNCTION(fmi2Reset)(void *instance)
{
    memset(&((Unit *)instance)->values, 0, sizeof(Values));
    return OK;
}

FUNCTION(fmi2GetReal)(void *instance, const Reference references[], size_t count, double values[])
{
    Unit *unit = instance;
    double y[OUTPUTS] = {0};
    add_product(C, OUTPUTS, STATES, unit->values.x, y);
    add_product(D, OUTPUTS, INPUTS, unit->values.u, y);
    for (size_t k = 0; k < count; k++) {
        if (references[k] >= INPUTS + OUTPUTS)
            return failed(unit, "unknown value reference");
        values[k] = references[k] < INPUTS ? unit->values.u[references[k]] : y[references[k] - INPUTS];
    }
    return OK;
}

FUNCTION(fmi2SetReal)(
    void *instance, const Reference references[], size_t count, const double values[])
{
    Unit *unit = instance;
    for (size_t k = 0; k < count; k++) {
        if (references[k] >= INPUTS)
            return failed(unit, "only inputs can be set");
        unit->values.u[references[k]] = values[k];
    }
    return OK;
}

FUNCTION(fmi2DoStep)(void *instance, double time, double step, int no_return)
{
    (void)time, (void)no_return;
    Unit *unit = instance;
    double count = floor(step / DT + 0.5);
    if (count < 1 || fabs(count * DT - step) > 1e-6 * step)
        return failed(unit, "the communication step is not a multiple of the step of the unit");
    for (; count > 0; count--) {
        double x[STATES] = {0};
        add_product(PHI, STATES, STATES, unit->values.x, x);
        add_product(GAMMA, STATES, INPUTS, unit->values.u, x);
        memcpy(unit->values.x, x, sizeof x);
    }
    return OK;
}

FUNCTION(fmi2GetFMUstate)(void *instance, void **state)
{
    if (!*state && !(*state = malloc(sizeof(Values))))
        return failed(instance, "not enough memory");
    memcpy(*state, &((Unit *)instance)->values, sizeof(Values));
    return OK;
}

FUNCTION(fmi2SetFMUstate)(void *instance, void *state)
{
    memcpy(&((Unit *)instance)->values, state, sizeof(Values));
    return OK;
}

FUNCTION(fmi2FreeFMUstate)(void *instance, void **state)
{
    (void)instance;
    free(*state);
    *state = NULL;
    return OK;
}

FUNCTION(fmi2SerializedFMUstateSize)(void *instance, void *state, size_t *size)
{
    (void)instance, (void)state;
    *size = sizeof(Values);
    return OK;
}

FUNCTION(fmi2SerializeFMUstate)(void *instance, void *state, char bytes[], size_t size)
{
    if (size < sizeof(Values))
        return failed(instance, "too little space for the state");
    memcpy(bytes, state, sizeof(Values));
    return OK;
}

FUNCTION(fmi2DeSerializeFMUstate)(void *instance, const char bytes[], size_t size, void **state)
{
    if (size != sizeof(Values))
        return failed(instance, "the state belongs to another unit");
    if (!*state && !(*state = malloc(sizeof(Values))))
        return failed(instance, "not enough memory");
    memcpy(*state, bytes, sizeof(Values));
    return OK;
}

/* The unit has real variables only, and no derivatives of variables. */
#define NO_VALUES(function, type) \
    FUNCTION(function)(void *unit, const Reference r[], size_t count, type values[]) \
    { \
        (void)r, (void)values; \
        return count ? failed(unit, "the unit has no variable of this type") : OK; \
    }
NO_VALUES(fmi2GetInteger, int)
NO_VALUES(fmi2GetBoolean, int)
NO_VALUES(fmi2GetString, const char *)
NO_VALUES(fmi2SetInteger, const int)
NO_VALUES(fmi2SetBoolean, const int)
NO_VALUES(fmi2SetString, const char *const)

#define NO_DERIVATIVES(function, type) \
    FUNCTION(function)( \
        void *unit, const Reference r[], size_t count, const int order[], type values[]) \
    { \
        (void)r, (void)order, (void)values; \
        return count ? failed(unit, "the unit has no derivatives") : OK; \
    }
NO_DERIVATIVES(fmi2SetRealInputDerivatives, const double)
NO_DERIVATIVES(fmi2GetRealOutputDerivatives, double)

FUNCTION(fmi2GetDirectionalDerivative)(
    void *unit, const Reference unknown[], size_t unknowns, const Reference known[], size_t knowns,
    const double direction[], double values[])
{
    (void)unknown, (void)unknowns, (void)known, (void)knowns, (void)direction, (void)values;
    return failed(unit, "the unit has no derivatives");
}

FUNCTION(fmi2CancelStep)(void *unit) { return failed(unit, "no step can be cancelled"); }

/* Steps end before fmi2DoStep returns, so that there is no status to report. */
#define NO_STATUS(function, type) \
    FUNCTION(function)(void *unit, int kind, type *value) \
    { \
        (void)unit, (void)kind, (void)value; \
        return DISCARD; \
    }
NO_STATUS(fmi2GetStatus, Status)
NO_STATUS(fmi2GetRealStatus, double)
NO_STATUS(fmi2GetIntegerStatus, int)
NO_STATUS(fmi2GetBooleanStatus, int)
NO_STATUS(fmi2GetStringStatus, const char *)
