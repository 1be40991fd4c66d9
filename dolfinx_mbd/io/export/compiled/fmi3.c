/* The functions of FMI 3.0 for co-simulation. */

#include <stdbool.h>

#include "mechanism.c"

/* For static linking, compile with -DFMI3_FUNCTION_PREFIX=<model identifier>_ */
#ifdef FMI3_FUNCTION_PREFIX
#define NAME(function) JOIN(FMI3_FUNCTION_PREFIX, function)
#else
#define NAME(function) function
#endif
#define FUNCTION(function) EXPORT Status NAME(function)

typedef void (*Logger)(void *, Status, const char *, const char *);

static void report(Unit *unit, Status status, const char *message)
{
    Logger logger;
    memcpy(&logger, &unit->logger, sizeof logger);
    if (logger)
        logger(unit->environment, status, "logStatusError", message);
}

EXPORT const char *NAME(fmi3GetVersion)(void) { return "3.0"; }

EXPORT void *NAME(fmi3InstantiateCoSimulation)(
    const char *name, const char *token, const char *resources, bool visible, bool logging,
    bool events, bool early_return, const Reference intermediate[], size_t count,
    void *environment, Logger logger, void *update)
{
    (void)resources, (void)visible, (void)logging, (void)events, (void)early_return;
    (void)intermediate, (void)count, (void)update;
    Unit *unit = create(name, token);
    if (!unit)
        return NULL;
    unit->report = report;
    unit->environment = environment;
    memcpy(&unit->logger, &logger, sizeof logger);
    return unit;
}
EXPORT void *NAME(fmi3InstantiateModelExchange)(
    const char *name, const char *token, const char *resources, bool visible, bool logging,
    void *environment, Logger logger)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging;
    (void)environment, (void)logger;
    return NULL;
}
EXPORT void *NAME(fmi3InstantiateScheduledExecution)(
    const char *name, const char *token, const char *resources, bool visible, bool logging,
    void *environment, Logger logger, void *update, void *lock, void *unlock)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging;
    (void)environment, (void)logger, (void)update, (void)lock, (void)unlock;
    return NULL;
}

EXPORT void NAME(fmi3FreeInstance)(void *unit) { free(unit); }
FUNCTION(fmi3SetDebugLogging)(void *unit, bool on, size_t count, const char *const categories[])
{
    (void)unit, (void)on, (void)count, (void)categories;
    return OK;
}
FUNCTION(fmi3EnterInitializationMode)(
    void *unit, bool has_tolerance, double tolerance, double start, bool has_stop, double stop)
{
    (void)unit, (void)has_tolerance, (void)tolerance, (void)start, (void)has_stop, (void)stop;
    return OK;
}
FUNCTION(fmi3ExitInitializationMode)(void *unit) { return unit ? OK : ERROR_; }
FUNCTION(fmi3Terminate)(void *unit) { return unit ? OK : ERROR_; }
FUNCTION(fmi3Reset)(void *unit)
{
    restart(unit);
    return OK;
}
FUNCTION(fmi3GetFloat64)(
    void *unit, const Reference r[], size_t count, double values[], size_t numbers)
{
    if (numbers != count)
        return failed(unit, ERROR_, "all variables are single numbers");
    return get(unit, r, count, values);
}
FUNCTION(fmi3SetFloat64)(
    void *unit, const Reference r[], size_t count, const double values[], size_t numbers)
{
    if (numbers != count)
        return failed(unit, ERROR_, "all variables are single numbers");
    return set(unit, r, count, values);
}
FUNCTION(fmi3DoStep)(
    void *instance, double time, double step, bool no_return, bool *event, bool *ends, bool *early,
    double *last)
{
    Unit *unit = instance;
    (void)time, (void)no_return;
    *event = *ends = *early = false;
    Status status = advance(unit, step);
    *last = unit->values.state[TIME_PLACE];
    return status;
}
FUNCTION(fmi3GetFMUState)(void *unit, void **state) { return copy_state(unit, state); }
FUNCTION(fmi3SetFMUState)(void *unit, void *state)
{
    memcpy(&((Unit *)unit)->values, state, sizeof(Values));
    return OK;
}
FUNCTION(fmi3FreeFMUState)(void *unit, void **state)
{
    (void)unit;
    free(*state);
    *state = NULL;
    return OK;
}
FUNCTION(fmi3SerializedFMUStateSize)(void *unit, void *state, size_t *size)
{
    (void)unit, (void)state;
    *size = sizeof(Values);
    return OK;
}
FUNCTION(fmi3SerializeFMUState)(void *unit, void *state, uint8_t bytes[], size_t size)
{
    if (size < sizeof(Values))
        return failed(unit, ERROR_, "too little space for the state");
    memcpy(bytes, state, sizeof(Values));
    return OK;
}
FUNCTION(fmi3DeserializeFMUState)(void *unit, const uint8_t bytes[], size_t size, void **state)
{
    return state_from(unit, bytes, size, state);
}

/* The unit has neither variables of other types, clocks and derivatives nor other modes. */
#define NONE(function, ...) \
    FUNCTION(function)(void *unit, __VA_ARGS__) \
    { \
        return failed(unit, ERROR_, "the unit does not support " #function); \
    }
#define NO_MODE(function) \
    FUNCTION(function)(void *unit) \
    { \
        return failed(unit, ERROR_, "the unit does not support " #function); \
    }
#define NO_VALUES(name, type) \
    NONE(JOIN(fmi3Get, name), const Reference r[], size_t n, type values[], size_t numbers) \
    NONE(JOIN(fmi3Set, name), const Reference r[], size_t n, const type values[], size_t numbers)
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
NO_VALUES(Float32, float)
NO_VALUES(Int8, int8_t)
NO_VALUES(UInt8, uint8_t)
NO_VALUES(Int16, int16_t)
NO_VALUES(UInt16, uint16_t)
NO_VALUES(Int32, int32_t)
NO_VALUES(UInt32, uint32_t)
NO_VALUES(Int64, int64_t)
NO_VALUES(UInt64, uint64_t)
NO_VALUES(Boolean, bool)
typedef const char *String;
NO_VALUES(String, String)
typedef const uint8_t *Binary;
NONE(fmi3GetBinary, const Reference r[], size_t n, size_t sizes[], Binary values[], size_t numbers)
NONE(fmi3SetBinary, const Reference r[], size_t n, const size_t s[], const Binary v[], size_t m)
NONE(fmi3GetClock, const Reference r[], size_t n, bool values[])
NONE(fmi3SetClock, const Reference r[], size_t n, const bool values[])
NONE(fmi3GetNumberOfVariableDependencies, Reference r, size_t *count)
NONE(fmi3GetVariableDependencies, Reference r, size_t i[], Reference o[], size_t j[], int k[], size_t n)
NONE(fmi3GetDirectionalDerivative, const Reference u[], size_t n, const Reference k[], size_t m,
     const double seed[], size_t seeds, double out[], size_t outs)
NONE(fmi3GetAdjointDerivative, const Reference u[], size_t n, const Reference k[], size_t m,
     const double seed[], size_t seeds, double out[], size_t outs)
NONE(fmi3GetOutputDerivatives, const Reference r[], size_t n, const int32_t o[], double v[], size_t m)
NONE(fmi3GetIntervalDecimal, const Reference r[], size_t n, double intervals[], int qualifiers[])
NONE(fmi3GetIntervalFraction, const Reference r[], size_t n, uint64_t c[], uint64_t d[], int q[])
NONE(fmi3GetShiftDecimal, const Reference r[], size_t n, double shifts[])
NONE(fmi3GetShiftFraction, const Reference r[], size_t n, uint64_t c[], uint64_t d[])
NONE(fmi3SetIntervalDecimal, const Reference r[], size_t n, const double intervals[])
NONE(fmi3SetIntervalFraction, const Reference r[], size_t n, const uint64_t c[], const uint64_t d[])
NONE(fmi3SetShiftDecimal, const Reference r[], size_t n, const double shifts[])
NONE(fmi3SetShiftFraction, const Reference r[], size_t n, const uint64_t c[], const uint64_t d[])
NONE(fmi3UpdateDiscreteStates, bool *a, bool *b, bool *c, bool *d, bool *e, double *t)
NONE(fmi3CompletedIntegratorStep, bool a, bool *b, bool *c)
NONE(fmi3SetTime, double time)
NONE(fmi3SetContinuousStates, const double x[], size_t n)
NONE(fmi3GetContinuousStates, double x[], size_t n)
NONE(fmi3GetContinuousStateDerivatives, double x[], size_t n)
NONE(fmi3GetNominalsOfContinuousStates, double x[], size_t n)
NONE(fmi3GetEventIndicators, double x[], size_t n)
NONE(fmi3GetNumberOfEventIndicators, size_t *n)
NONE(fmi3GetNumberOfContinuousStates, size_t *n)
NONE(fmi3ActivateModelPartition, Reference clock, double time)
NO_MODE(fmi3EnterEventMode)
NO_MODE(fmi3EnterConfigurationMode)
NO_MODE(fmi3ExitConfigurationMode)
NO_MODE(fmi3EvaluateDiscreteStates)
NO_MODE(fmi3EnterContinuousTimeMode)
NO_MODE(fmi3EnterStepMode)
