/* The functions of FMI 3.0 for co-simulation. */

#include <stdbool.h>

#include "model.c"

#define FMI fmi3
#ifdef FMI3_FUNCTION_PREFIX /* -DFMI3_FUNCTION_PREFIX=<model identifier>_ */
#define PREFIX FMI3_FUNCTION_PREFIX
#endif
#define STATE FMUState
#define DESERIALIZE Deserialize
typedef bool Boolean;
typedef uint8_t Byte;

#include "fmi.c"

typedef void (*Logger)(void *, Status, const char *, const char *);

static void report(Unit *unit, Status status, const char *message)
{
    Logger logger;
    memcpy(&logger, &unit->logger, sizeof logger);
    if (logger)
        logger(unit->environment, status, "logStatusError", message);
}

EXPORT const char *NAME(GetVersion)(void) { return "3.0"; }

EXPORT void *NAME(InstantiateCoSimulation)(
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
EXPORT void *NAME(InstantiateModelExchange)(
    const char *name, const char *token, const char *resources, bool visible, bool logging,
    void *environment, Logger logger)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging;
    (void)environment, (void)logger;
    return NULL;
}
EXPORT void *NAME(InstantiateScheduledExecution)(
    const char *name, const char *token, const char *resources, bool visible, bool logging,
    void *environment, Logger logger, void *update, void *lock, void *unlock)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging;
    (void)environment, (void)logger, (void)update, (void)lock, (void)unlock;
    return NULL;
}

FUNCTION(EnterInitializationMode)(
    void *unit, bool has_tolerance, double tolerance, double start, bool has_stop, double stop)
{
    (void)unit, (void)has_tolerance, (void)tolerance, (void)start, (void)has_stop, (void)stop;
    return OK;
}
FUNCTION(GetFloat64)(
    void *unit, const Reference r[], size_t count, double values[], size_t numbers)
{
    if (numbers != count)
        return failed(unit, ERROR_, "all variables are single numbers");
    return get(unit, r, count, values);
}
FUNCTION(SetFloat64)(
    void *unit, const Reference r[], size_t count, const double values[], size_t numbers)
{
    if (numbers != count)
        return failed(unit, ERROR_, "all variables are single numbers");
    return set(unit, r, count, values);
}
FUNCTION(DoStep)(
    void *instance, double time, double step, bool no_return, bool *event, bool *ends, bool *early,
    double *last)
{
    Unit *unit = instance;
    (void)time, (void)no_return;
    *event = *ends = *early = false;
    Status status = advance(unit, step);
    *last = time_of(unit);
    return status;
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
    NONE(JOIN(Get, name), const Reference r[], size_t n, type values[], size_t numbers) \
    NONE(JOIN(Set, name), const Reference r[], size_t n, const type values[], size_t numbers)
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
NONE(GetBinary, const Reference r[], size_t n, size_t sizes[], Binary values[], size_t numbers)
NONE(SetBinary, const Reference r[], size_t n, const size_t s[], const Binary v[], size_t m)
NONE(GetClock, const Reference r[], size_t n, bool values[])
NONE(SetClock, const Reference r[], size_t n, const bool values[])
NONE(GetNumberOfVariableDependencies, Reference r, size_t *count)
NONE(GetVariableDependencies, Reference r, size_t i[], Reference o[], size_t j[], int k[], size_t n)
NONE(GetDirectionalDerivative, const Reference u[], size_t n, const Reference k[], size_t m,
     const double seed[], size_t seeds, double out[], size_t outs)
NONE(GetAdjointDerivative, const Reference u[], size_t n, const Reference k[], size_t m,
     const double seed[], size_t seeds, double out[], size_t outs)
NONE(GetOutputDerivatives, const Reference r[], size_t n, const int32_t o[], double v[], size_t m)
NONE(GetIntervalDecimal, const Reference r[], size_t n, double intervals[], int qualifiers[])
NONE(GetIntervalFraction, const Reference r[], size_t n, uint64_t c[], uint64_t d[], int q[])
NONE(GetShiftDecimal, const Reference r[], size_t n, double shifts[])
NONE(GetShiftFraction, const Reference r[], size_t n, uint64_t c[], uint64_t d[])
NONE(SetIntervalDecimal, const Reference r[], size_t n, const double intervals[])
NONE(SetIntervalFraction, const Reference r[], size_t n, const uint64_t c[], const uint64_t d[])
NONE(SetShiftDecimal, const Reference r[], size_t n, const double shifts[])
NONE(SetShiftFraction, const Reference r[], size_t n, const uint64_t c[], const uint64_t d[])
NONE(UpdateDiscreteStates, bool *a, bool *b, bool *c, bool *d, bool *e, double *t)
NONE(CompletedIntegratorStep, bool a, bool *b, bool *c)
NONE(SetTime, double time)
NONE(SetContinuousStates, const double x[], size_t n)
NONE(GetContinuousStates, double x[], size_t n)
NONE(GetContinuousStateDerivatives, double x[], size_t n)
NONE(GetNominalsOfContinuousStates, double x[], size_t n)
NONE(GetEventIndicators, double x[], size_t n)
NONE(GetNumberOfEventIndicators, size_t *n)
NONE(GetNumberOfContinuousStates, size_t *n)
NONE(ActivateModelPartition, Reference clock, double time)
NO_MODE(EnterEventMode)
NO_MODE(EnterConfigurationMode)
NO_MODE(ExitConfigurationMode)
NO_MODE(EvaluateDiscreteStates)
NO_MODE(EnterContinuousTimeMode)
NO_MODE(EnterStepMode)
