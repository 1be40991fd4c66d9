/* The functions that FMI 2.0 and 3.0 have in common. fmi2.c and fmi3.c define
       FMI               the prefix of all functions,
       PREFIX            what else is put before them, for static linking,
       STATE             the word in the names of the functions of saved states,
       DESERIALIZE       the first word of the function that reads a state,
       Boolean, Byte     types. */

#ifdef PREFIX
#define NAME(function) JOIN(PREFIX, JOIN(FMI, function))
#else
#define NAME(function) JOIN(FMI, function)
#endif
#define FUNCTION(function) EXPORT Status NAME(function)

EXPORT void NAME(FreeInstance)(void *unit) { free(unit); }
FUNCTION(SetDebugLogging)(void *unit, Boolean on, size_t count, const char *const categories[])
{
    (void)unit, (void)on, (void)count, (void)categories;
    return OK;
}
FUNCTION(ExitInitializationMode)(void *unit) { return unit ? OK : ERROR_; }
FUNCTION(Terminate)(void *unit) { return unit ? OK : ERROR_; }
FUNCTION(Reset)(void *unit)
{
    restart(unit);
    return OK;
}

FUNCTION(JOIN(Get, STATE))(void *unit, void **state)
{
    return copy_state(unit, &((Unit *)unit)->values, state);
}
FUNCTION(JOIN(Set, STATE))(void *unit, void *state)
{
    memcpy(&((Unit *)unit)->values, state, sizeof(Values));
    return OK;
}
FUNCTION(JOIN(Free, STATE))(void *unit, void **state)
{
    (void)unit;
    free(*state);
    *state = NULL;
    return OK;
}
FUNCTION(JOIN(Serialized, JOIN(STATE, Size)))(void *unit, void *state, size_t *size)
{
    (void)unit, (void)state;
    *size = sizeof(Values);
    return OK;
}
FUNCTION(JOIN(Serialize, STATE))(void *unit, void *state, Byte bytes[], size_t size)
{
    if (size < sizeof(Values))
        return failed(unit, ERROR_, "too little space for the state");
    memcpy(bytes, state, sizeof(Values));
    return OK;
}
FUNCTION(JOIN(DESERIALIZE, STATE))(void *unit, const Byte bytes[], size_t size, void **state)
{
    if (size != sizeof(Values))
        return failed(unit, ERROR_, "the state belongs to another unit");
    return copy_state(unit, bytes, state);
}
