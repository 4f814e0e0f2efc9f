/* Makes writes and syncs of a journal fail. What is to fail stands in a small file that both sides have mapped. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static volatile int *orders; /* [0]: errno of every write, [1]: errno of every sync; 0: none */

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_ORDERS");
    int fd = path ? open(path, O_RDWR) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) orders = page;
    close(fd);
}

static int ordered(int which, int fd) {
    if (!orders || !orders[which]) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (!strstr(path, "journal.db")) return 0;
    errno = orders[which];
    return 1;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) *(void **)&real = dlsym(RTLD_NEXT, name)

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return ordered(0, fd) ? -1 : real(fd, data, size, at);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    return ordered(0, fd) ? -1 : real(fd, data, size, at);
}
ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return ordered(0, fd) ? -1 : real(fd, data, size);
}
int fsync(int fd) {
    REAL(int, "fsync", int);
    return ordered(1, fd) ? -1 : real(fd);
}
int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    return ordered(1, fd) ? -1 : real(fd);
}
