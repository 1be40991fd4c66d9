/* Instances of a unit for co-simulation and their saved states, for every model and version of FMI.

   Included by model.c, which defines before it
       Values    what an importing program saves and restores,
       Memory    what else an instance needs,
   and after it the functions that are declared below. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

typedef enum { OK, WARNING, DISCARD, ERROR_, FATAL, PENDING } Status;
typedef unsigned int Reference;

typedef struct Unit {
    Values values;
    Memory memory;
    void (*report)(struct Unit *unit, Status status, const char *message);
    void *environment, *logger;
    char name[];
} Unit;

/* The functions of a model: initial values, variables, communication steps and the time. */
static void restart(Unit *unit);
static Status get(Unit *unit, const Reference references[], size_t count, double values[]);
static Status set(Unit *unit, const Reference references[], size_t count, const double values[]);
static Status advance(Unit *unit, double step);
static double time_of(const Unit *unit);

static Status failed(Unit *unit, Status status, const char *message)
{
    unit->report(unit, status, message);
    return status;
}

/* Return the number of steps of length DT in a communication step, or 0 if it is no multiple. */
static double steps_in(double step)
{
    double count = floor(step / DT + 0.5);
    return count >= 1 && fabs(count * DT - step) <= 1e-6 * step ? count : 0;
}

static Unit *create(const char *name, const char *identifier)
{
    if (strcmp(identifier, IDENTIFIER) != 0)
        return NULL;
    Unit *unit = calloc(1, sizeof(Unit) + strlen(name) + 1);
    if (!unit)
        return NULL;
    strcpy(unit->name, name);
    restart(unit);
    return unit;
}

/* Copy a state from the values of an instance or from bytes into memory for it. */
static Status copy_state(Unit *unit, const void *source, void **state)
{
    if (!*state && !(*state = malloc(sizeof(Values))))
        return failed(unit, ERROR_, "not enough memory");
    memcpy(*state, source, sizeof(Values));
    return OK;
}
