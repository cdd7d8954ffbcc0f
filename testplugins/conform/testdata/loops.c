// Loops in which the meter shows most. n is how much of it.
typedef unsigned int u32;
typedef unsigned long long u64;
#define EXPORT(name) __attribute__((export_name(#name))) u64 name

static unsigned char bytes[1 << 16];

EXPORT(xorshift)(u32 n) {
  u64 x = 88172645463325252ull;
  for (; n; n--) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
  return x;
}

EXPORT(collatz)(u32 n) {
  u64 steps = 0;
  for (u32 i = 1; i <= n; i++)
    for (u32 x = i; x != 1; steps++) x = x & 1 ? 3 * x + 1 : x / 2;
  return steps;
}

EXPORT(sieve)(u32 n) {
  u64 primes = 0;
  for (; n; n--) {
    for (u32 i = 0; i < sizeof bytes; i++) bytes[i] = 1;
    for (u32 i = 2; i < sizeof bytes; i++)
      if (bytes[i]) {
        primes++;
        for (u32 j = i + i; j < sizeof bytes; j += i) bytes[j] = 0;
      }
  }
  return primes;
}

EXPORT(search)(u32 n) {
  u64 found = 0;
  for (; n; n--) {
    u32 i = 0;
    while (i < sizeof bytes - 1 && bytes[i] != 0xff) i++;
    found += i;
  }
  return found;
}

__attribute__((noinline)) static u64 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

EXPORT(fib)(u32 n) { return fibonacci(n); }
