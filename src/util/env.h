/* An environment as a list of "NAME=value" that ends with NULL. */
#ifndef UTIL_ENV_H
#define UTIL_ENV_H

/* The value of the first entry with this name, as getenv; NULL: there is none.  env may be NULL. */
const char *env_get(char *const *env, const char *name);

#endif
