/* The functions of FMI 2.0 for co-simulation. */

#include "mechanism.c"

/* For static linking, compile with -DFMI2_FUNCTION_PREFIX=<model identifier>_ */
#ifdef FMI2_FUNCTION_PREFIX
#define NAME(function) JOIN(FMI2_FUNCTION_PREFIX, function)
#else
#define NAME(function) function
#endif
#define FUNCTION(function) EXPORT Status NAME(function)

typedef void (*Logger)(void *, const char *, Status, const char *, const char *, ...);
typedef struct {
    Logger logger;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*step_finished)(void *, Status);
    void *environment;
} Callbacks;

static void report(Unit *unit, Status status, const char *message)
{
    Logger logger;
    memcpy(&logger, &unit->logger, sizeof logger);
    if (logger)
        logger(unit->environment, unit->name, status, "logStatusError", "%s", message);
}

EXPORT const char *NAME(fmi2GetTypesPlatform)(void) { return "default"; }
EXPORT const char *NAME(fmi2GetVersion)(void) { return "2.0"; }

EXPORT void *NAME(fmi2Instantiate)(
    const char *name, int type, const char *guid, const char *resources, const Callbacks *callbacks,
    int visible, int logging)
{
    (void)resources, (void)visible, (void)logging;
    Unit *unit = type == 1 ? create(name, guid) : NULL;
    if (!unit)
        return NULL;
    unit->report = report;
    if (callbacks) {
        memcpy(&unit->logger, &callbacks->logger, sizeof callbacks->logger);
        unit->environment = callbacks->environment;
    }
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
FUNCTION(fmi2Reset)(void *unit)
{
    restart(unit);
    return OK;
}
FUNCTION(fmi2GetReal)(void *unit, const Reference r[], size_t count, double values[])
{
    return get(unit, r, count, values);
}
FUNCTION(fmi2SetReal)(void *unit, const Reference r[], size_t count, const double values[])
{
    return set(unit, r, count, values);
}
FUNCTION(fmi2DoStep)(void *unit, double time, double step, int no_return)
{
    (void)time, (void)no_return;
    return advance(unit, step);
}
FUNCTION(fmi2GetFMUstate)(void *unit, void **state) { return copy_state(unit, state); }
FUNCTION(fmi2SetFMUstate)(void *unit, void *state)
{
    memcpy(&((Unit *)unit)->values, state, sizeof(Values));
    return OK;
}
FUNCTION(fmi2FreeFMUstate)(void *unit, void **state)
{
    (void)unit;
    free(*state);
    *state = NULL;
    return OK;
}
FUNCTION(fmi2SerializedFMUstateSize)(void *unit, void *state, size_t *size)
{
    (void)unit, (void)state;
    *size = sizeof(Values);
    return OK;
}
FUNCTION(fmi2SerializeFMUstate)(void *unit, void *state, char bytes[], size_t size)
{
    if (size < sizeof(Values))
        return failed(unit, ERROR_, "too little space for the state");
    memcpy(bytes, state, sizeof(Values));
    return OK;
}
FUNCTION(fmi2DeSerializeFMUstate)(void *unit, const char bytes[], size_t size, void **state)
{
    return state_from(unit, bytes, size, state);
}

/* The unit has real variables only, and no derivatives of variables. */
#define NO_VALUES(function, type) \
    FUNCTION(function)(void *unit, const Reference r[], size_t count, type values[]) \
    { \
        (void)r, (void)values; \
        return count ? failed(unit, ERROR_, "the unit has no variable of this type") : OK; \
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
        return count ? failed(unit, ERROR_, "the unit has no derivatives") : OK; \
    }
NO_DERIVATIVES(fmi2SetRealInputDerivatives, const double)
NO_DERIVATIVES(fmi2GetRealOutputDerivatives, double)

FUNCTION(fmi2GetDirectionalDerivative)(
    void *unit, const Reference unknown[], size_t unknowns, const Reference known[], size_t knowns,
    const double direction[], double values[])
{
    (void)unknown, (void)unknowns, (void)known, (void)knowns, (void)direction, (void)values;
    return failed(unit, ERROR_, "the unit has no derivatives");
}
FUNCTION(fmi2CancelStep)(void *unit)
{
    return failed(unit, ERROR_, "no step can be cancelled");
}

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
