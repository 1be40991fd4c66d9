/* The functions of FMI 2.0 for co-simulation. */

#include "model.c"

#define FMI fmi2
#ifdef FMI2_FUNCTION_PREFIX /* -DFMI2_FUNCTION_PREFIX=<model identifier>_ */
#define PREFIX FMI2_FUNCTION_PREFIX
#endif
#define STATE FMUstate
#define DESERIALIZE DeSerialize
typedef int Boolean;
typedef char Byte;

#include "fmi.c"

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

EXPORT const char *NAME(GetTypesPlatform)(void) { return "default"; }
EXPORT const char *NAME(GetVersion)(void) { return "2.0"; }

EXPORT void *NAME(Instantiate)(
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

FUNCTION(SetupExperiment)(
    void *unit, int has_tolerance, double tolerance, double start, int has_stop, double stop)
{
    (void)unit, (void)has_tolerance, (void)tolerance, (void)start, (void)has_stop, (void)stop;
    return OK;
}
FUNCTION(EnterInitializationMode)(void *unit) { return unit ? OK : ERROR_; }
FUNCTION(GetReal)(void *unit, const Reference r[], size_t count, double values[])
{
    return get(unit, r, count, values);
}
FUNCTION(SetReal)(void *unit, const Reference r[], size_t count, const double values[])
{
    return set(unit, r, count, values);
}
FUNCTION(DoStep)(void *unit, double time, double step, int no_return)
{
    (void)time, (void)no_return;
    return advance(unit, step);
}

/* The unit has real variables only, and no derivatives of variables. */
#define NO_VALUES(function, type) \
    FUNCTION(function)(void *unit, const Reference r[], size_t count, type values[]) \
    { \
        (void)r, (void)values; \
        return count ? failed(unit, ERROR_, "the unit has no variable of this type") : OK; \
    }
NO_VALUES(GetInteger, int)
NO_VALUES(GetBoolean, int)
NO_VALUES(GetString, const char *)
NO_VALUES(SetInteger, const int)
NO_VALUES(SetBoolean, const int)
NO_VALUES(SetString, const char *const)

#define NO_DERIVATIVES(function, type) \
    FUNCTION(function)( \
        void *unit, const Reference r[], size_t count, const int order[], type values[]) \
    { \
        (void)r, (void)order, (void)values; \
        return count ? failed(unit, ERROR_, "the unit has no derivatives") : OK; \
    }
NO_DERIVATIVES(SetRealInputDerivatives, const double)
NO_DERIVATIVES(GetRealOutputDerivatives, double)

FUNCTION(GetDirectionalDerivative)(
    void *unit, const Reference unknown[], size_t unknowns, const Reference known[], size_t knowns,
    const double direction[], double values[])
{
    (void)unknown, (void)unknowns, (void)known, (void)knowns, (void)direction, (void)values;
    return failed(unit, ERROR_, "the unit has no derivatives");
}
FUNCTION(CancelStep)(void *unit)
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
NO_STATUS(GetStatus, Status)
NO_STATUS(GetRealStatus, double)
NO_STATUS(GetIntegerStatus, int)
NO_STATUS(GetBooleanStatus, int)
NO_STATUS(GetStringStatus, const char *)
