/* Functions that the translated steps call: memory, reshaped arrays and products of matrices. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LOAD(type, address) load_##type(address)
#define STORE(type, address, value) store_##type(address, value)
#define ACCESS(name, type) \
    static inline type load_##name(const char *address) \
    { \
        type value; \
        memcpy(&value, address, sizeof value); \
        return value; \
    } \
    static inline void store_##name(char *address, type value) \
    { \
        memcpy(address, &value, sizeof value); \
    }
typedef char *pointer;
ACCESS(double, double)
ACCESS(pointer, pointer)
ACCESS(uint8_t, uint8_t)
ACCESS(uint16_t, uint16_t)
ACCESS(uint32_t, uint32_t)
ACCESS(uint64_t, uint64_t)

static inline double number(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint64_t bits(double value)
{
    uint64_t out;
    memcpy(&out, &value, sizeof out);
    return out;
}

static inline uint64_t smax(uint64_t a, uint64_t b) { return (int64_t)a > (int64_t)b ? a : b; }
static inline uint64_t smin(uint64_t a, uint64_t b) { return (int64_t)a < (int64_t)b ? a : b; }
static inline uint64_t umax(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t umin(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint8_t umul_overflows(uint64_t a, uint64_t b) { return b && a > UINT64_MAX / b; }
static inline uint8_t uadd_overflows(uint64_t a, uint64_t b) { return a + b < a; }
static inline uint8_t usub_overflows(uint64_t a, uint64_t b) { return a < b; }
/* Sizes of arrays are not negative. */
static inline uint8_t smul_overflows(uint64_t a, uint64_t b) { return b && a > INT64_MAX / b; }
static inline uint8_t sadd_overflows(uint64_t a, uint64_t b) { return a + b > INT64_MAX; }

/* An array that is counted: numba reads the address of the numbers at the fourth place. */
typedef struct {
    uint64_t count;
    char *unused[2], *numbers;
    uint64_t size;
    char *owner;
} Counted;

static char *NRT_MemInfo_alloc_aligned(uint64_t size, uint32_t align)
{
    (void)align;
    Counted *array = malloc(sizeof(Counted) + 16 + size);
    if (!array)
        return NULL;
    memset(array, 0, sizeof *array);
    array->count = 1;
    array->size = size;
    array->numbers = (char *)(array + 1) + (16 - (uintptr_t)(array + 1) % 16) % 16;
    return (char *)array;
}
static inline void NRT_incref(char *array)
{
    if (array)
        ((Counted *)array)->count++;
}
static inline void NRT_decref(char *array)
{
    if (array && --((Counted *)array)->count == 0)
        free(array);
}

/* Strides of a new shape of an array whose numbers are in sequence. */
static uint32_t numba_attempt_nocopy_reshape(
    uint64_t rank, char *shape, char *strides, uint64_t new_rank, char *new_shape,
    char *new_strides, uint64_t size, uint32_t by_columns)
{
    uint64_t step = size, count = 1;
    if (by_columns)
        return 0;
    for (uint64_t k = rank; k-- > 0;) {
        uint64_t length = load_uint64_t(shape + 8 * k);
        if (length != 1 && load_uint64_t(strides + 8 * k) != step)
            return 0;
        step *= length;
        count *= length;
    }
    step = size;
    for (uint64_t k = new_rank; k-- > 0;) {
        store_uint64_t(new_strides + 8 * k, step);
        step *= load_uint64_t(new_shape + 8 * k);
    }
    return step == count * size;
}

/* Products of BLAS, with matrices in column order. */
static uint32_t numba_xxdot(
    uint8_t kind, uint8_t conjugate, uint64_t n, char *x, char *y, char *result)
{
    (void)kind, (void)conjugate;
    const double *a = (const double *)x, *b = (const double *)y;
    double sum = 0.0;
    for (uint64_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    store_double(result, sum);
    return 0;
}

static uint32_t numba_xxgemv(
    uint8_t kind, uint8_t transposed, uint64_t m, uint64_t n, char *alpha, char *matrix,
    uint64_t lda, char *vector, char *beta, char *result)
{
    (void)kind;
    const double *A = (const double *)matrix, *x = (const double *)vector;
    double *y = (double *)result, a = load_double(alpha), b = load_double(beta);
    uint64_t rows = transposed == 'n' || transposed == 'N' ? m : n;
    for (uint64_t i = 0; i < rows; i++)
        y[i] = b == 0.0 ? 0.0 : b * y[i];
    for (uint64_t j = 0; j < n; j++) {
        const double *column = A + j * lda;
        if (rows == m && (transposed == 'n' || transposed == 'N')) {
            double factor = a * x[j];
            if (factor != 0.0)
                for (uint64_t i = 0; i < m; i++)
                    y[i] += factor * column[i];
        } else {
            /* four sums at a time, which processors add in parallel */
            double s[4] = {0.0, 0.0, 0.0, 0.0};
            uint64_t i = 0;
            for (; i + 4 <= m; i += 4)
                for (int k = 0; k < 4; k++)
                    s[k] += column[i + k] * x[i + k];
            for (; i < m; i++)
                s[0] += column[i] * x[i];
            y[j] += a * ((s[0] + s[1]) + (s[2] + s[3]));
        }
    }
    return 0;
}

static uint32_t numba_xxgemm(
    uint8_t kind, uint8_t first, uint8_t second, uint64_t m, uint64_t n, uint64_t k, char *alpha,
    char *A, uint64_t lda, char *B, uint64_t ldb, char *beta, char *C, uint64_t ldc)
{
    int first_transposed = first != 'n' && first != 'N';
    int second_transposed = second != 'n' && second != 'N';
    const double *a = (const double *)A, *b = (const double *)B;
    double *c = (double *)C, factor = load_double(alpha), old = load_double(beta);
    (void)kind;
    for (uint64_t j = 0; j < n; j++) {
        double *column = c + j * ldc;
        for (uint64_t i = 0; i < m; i++)
            column[i] = old == 0.0 ? 0.0 : old * column[i];
        for (uint64_t l = 0; l < k; l++) {
            double x = factor * (second_transposed ? b[j + l * ldb] : b[l + j * ldb]);
            if (x == 0.0)
                continue;
            if (first_transposed)
                for (uint64_t i = 0; i < m; i++)
                    column[i] += a[l + i * lda] * x;
            else
                for (uint64_t i = 0; i < m; i++)
                    column[i] += a[i + l * lda] * x;
        }
    }
    return 0;
}

/* The products above do not fail, so that the messages of numba are never written. */
static char PyExc_RuntimeError[8];
static inline void numba_gil_ensure(char *state) { (void)state; }
static inline void PyErr_SetString(char *kind, char *text) { (void)kind, (void)text; }
static inline void Py_FatalError(char *text)
{
    (void)text;
    abort();
}
