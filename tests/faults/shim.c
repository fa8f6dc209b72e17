/* Preloaded in front of libc: counts every operation that changes files below one folder, writes each into a log
 * that all processes share, and makes the chosen one fail, or kills the process group before or after it.
 *
 * libc's own callers cannot be intercepted (fopen calls an internal open), so the stdio functions that write are
 * here as well. Rust's rustix, under safetensors, asks the kernel itself: seccomp turns its renameat into a signal, and
 * all renames made here go through renameat2. worker.py compares log and disk, so a further one would not go unseen.
 * fsync is recorded and not carried out: no machine crashes here, and disk.py knows what it promises.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

enum kind { CREATE, TRUNCATE, WRITE, FSYNC, FSYNC_FOLDER, RENAME, UNLINK, MKDIR, RMDIR, LINK };
enum outcome { NOTHING, KILL_BEFORE, KILL_AFTER, FAIL_ONCE, FAIL_ALWAYS };
enum verdict { PASS, RUN, FAIL, SHORT };
#define ENTRIES 16384
#define NAME 240

struct entry { int32_t kind, done; char path[NAME], other[NAME]; };
/* The same as Control in shim.py. half: the write that fails writes half of its bytes first; keep: store what a file
 * holds at its fsync; mapped: files mapped for writing, which escape; fired: where the fault first was, or -1. */
struct control {
    int32_t armed, outcome, error, half;
    int64_t at, count;
    int64_t fired;
    int32_t failing, keep, mapped;
    char box[NAME], store[NAME];
    struct entry log[ENTRIES];
};
static struct control *control;
struct step { enum verdict verdict; int64_t at; };

#define REAL(name) \
    ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })
#define ARMED (control && control->armed)

/* ---- where an operation happens ---- */

/* A path made absolute, "." and ".." resolved by name; 0 when that is impossible. */
static int absolute(int folder, const char *path, char *out) {
    char joined[2 * PATH_MAX] = "", link[64] = "/proc/self/cwd", *end = out;
    if (!path || strlen(path) >= PATH_MAX) return 0;
    if (*path != '/') {
        if (folder != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, joined, PATH_MAX - 1);
        if (length <= 0) return 0;
        joined[length] = '/';
        joined[length + 1] = 0;
    }
    strcat(joined, path);
    for (const char *from = joined; *from;) {
        size_t length = strcspn(from, "/");
        if (length == 2 && !memcmp(from, "..", 2)) {
            while (end > out && *--end != '/') { }
        } else if (length && !(length == 1 && *from == '.')) {
            if (end - out + length + 2 > PATH_MAX) return 0;
            *end++ = '/';
            end = mempcpy(end, from, length);
        }
        from += length + (from[length] == '/');
    }
    *end = 0;
    return 1;
}

/* Copies the part of a path that is below the box; 0 when it is elsewhere. */
static int below(const char *path, char *inner) {
    size_t length = strlen(control->box);
    if (!length || strncmp(path, control->box, length) || (path[length] && path[length] != '/')) return 0;
    const char *rest = path[length] ? path + length + 1 : ".";
    if (strlen(rest) >= NAME) abort();
    strcpy(inner, rest);
    return 1;
}

static int inner_path(int folder, const char *path, char *inner) {
    char whole[PATH_MAX];
    int saved = errno, found = ARMED && absolute(folder, path, whole) && below(whole, inner);
    errno = saved;
    return found;
}

static int inner_file(int descriptor, char *inner) {
    char link[64], whole[PATH_MAX];
    if (!ARMED || descriptor < 0) return 0;
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, whole, sizeof whole - 1);
    errno = saved;
    if (length <= 0) return 0;
    whole[length] = 0;
    return below(whole, inner);
}

static int exists(int folder, const char *path) {
    struct stat found;
    int saved = errno, there = !fstatat(folder, path, &found, AT_SYMLINK_NOFOLLOW);
    errno = saved;
    return there;
}

/* ---- the fault ---- */

static void die(int64_t at) {
    control->fired = at;
    kill(0, SIGKILL);
    for (;;) pause();
}

/* A full disk still lets files be renamed and removed; a broken one lets nothing. */
static int can_fail(enum kind kind) {
    return control->error != ENOSPC || (kind != UNLINK && kind != RMDIR && kind != RENAME);
}

static struct step begin(enum kind kind, const char *path, const char *other) {
    struct step step = {RUN, __atomic_fetch_add(&control->count, 1, __ATOMIC_SEQ_CST)};
    if (step.at >= ENTRIES) abort();
    struct entry *entry = &control->log[step.at];
    entry->kind = kind;
    entry->done = 0;
    strcpy(entry->path, path);
    strcpy(entry->other, other ? other : "");
    if (control->outcome == KILL_BEFORE && step.at == control->at) die(step.at);
    int fails = control->outcome == FAIL_ALWAYS || (control->outcome == FAIL_ONCE && control->fired < 0);
    if (control->failing || (fails && step.at >= control->at && can_fail(kind))) {
        step.verdict = control->half && kind == WRITE && control->fired < 0 ? SHORT : FAIL;
        control->failing = step.verdict == SHORT;
        if (control->fired < 0) control->fired = step.at;
        errno = control->error;
    }
    return step;
}

static void end(struct step step, int done) {
    int saved = errno;
    control->log[step.at].done = done;
    if (control->outcome == KILL_AFTER && step.at == control->at) die(step.at);
    errno = saved;
}

/* An operation in one statement: what it is called, whether it is counted, what it is, what failure looks like. */
#define COUNTED(type, inside, kind, path, other, failure, call)           \
    do {                                                                  \
        if (!(inside)) return call;                                       \
        struct step step = begin(kind, path, other);                      \
        type result = failure;                                            \
        if (step.verdict == RUN || step.verdict == SHORT) result = call;  \
        end(step, step.verdict != FAIL && result != failure);             \
        return result;                                                    \
    } while (0)

/* The same for calls that write `size` bytes; `half` is the call with half of them. */
#define WRITTEN(descriptor, size, call, half)                        \
    do {                                                             \
        char path[NAME];                                             \
        if (!inner_file(descriptor, path)) return call;              \
        struct step step = begin(WRITE, path, NULL);                 \
        ssize_t result = -1;                                         \
        if (step.verdict == SHORT && (size) > 1) result = half;      \
        else if (step.verdict == RUN) result = call;                 \
        end(step, result >= 0);                                      \
        return result;                                               \
    } while (0)

/* ---- files ---- */

static int changes(int folder, const char *path, int flags, char *inner, enum kind *kind) {
    if (!(flags & (O_CREAT | O_TRUNC)) || !inner_path(folder, path, inner)) return 0;
    int there = exists(folder, path);
    *kind = there ? TRUNCATE : CREATE;
    return there ? (flags & O_TRUNC) != 0 && !(flags & O_EXCL) : (flags & O_CREAT) != 0;
}

#define OPEN(folder, path, flags, call)                                                  \
    do {                                                                                 \
        char inner[NAME];                                                                \
        enum kind kind = CREATE;                                                         \
        COUNTED(int, changes(folder, path, flags, inner, &kind), kind, inner, NULL, -1, call); \
    } while (0)
#define MODE(last) mode_t mode = 0; va_list more; va_start(more, last); \
    if (last & (O_CREAT | O_TMPFILE)) { mode = va_arg(more, mode_t); } va_end(more)

int open(const char *path, int flags, ...) { MODE(flags); OPEN(AT_FDCWD, path, flags, REAL(open)(path, flags, mode)); }
int open64(const char *path, int flags, ...) { MODE(flags); OPEN(AT_FDCWD, path, flags, REAL(open64)(path, flags, mode)); }
int openat(int at, const char *path, int flags, ...) { MODE(flags); OPEN(at, path, flags, REAL(openat)(at, path, flags, mode)); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags); OPEN(at, path, flags, REAL(openat64)(at, path, flags, mode)); }
int creat(const char *path, mode_t mode) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open64(path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

static int flags_of(const char *mode) {
    return *mode == 'w' ? O_CREAT | O_TRUNC : *mode == 'a' ? O_CREAT : 0;
}
FILE *fopen(const char *path, const char *mode) {
    char inner[NAME];
    enum kind kind = CREATE;
    COUNTED(FILE *, changes(AT_FDCWD, path, flags_of(mode), inner, &kind), kind, inner, NULL, NULL, REAL(fopen)(path, mode));
}
FILE *fopen64(const char *path, const char *mode) {
    char inner[NAME];
    enum kind kind = CREATE;
    COUNTED(FILE *, changes(AT_FDCWD, path, flags_of(mode), inner, &kind), kind, inner, NULL, NULL, REAL(fopen64)(path, mode));
}

ssize_t write(int file, const void *bytes, size_t size) {
    WRITTEN(file, size, REAL(write)(file, bytes, size), REAL(write)(file, bytes, size / 2));
}
ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) {
    WRITTEN(file, size, REAL(pwrite)(file, bytes, size, at), REAL(pwrite)(file, bytes, size / 2, at));
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) {
    WRITTEN(file, size, REAL(pwrite64)(file, bytes, size, at), REAL(pwrite64)(file, bytes, size / 2, at));
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    WRITTEN(file, count, REAL(writev)(file, parts, count), REAL(writev)(file, parts, count / 2));
}
ssize_t sendfile(int to, int from, off_t *at, size_t size) {
    WRITTEN(to, size, REAL(sendfile)(to, from, at, size), REAL(sendfile)(to, from, at, size / 2));
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
    WRITTEN(to, size, REAL(sendfile64)(to, from, at, size), REAL(sendfile64)(to, from, at, size / 2));
}
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *put, size_t size, unsigned flags) {
    WRITTEN(to, size, REAL(copy_file_range)(from, at, to, put, size, flags),
            REAL(copy_file_range)(from, at, to, put, size / 2, flags));
}

size_t fwrite(const void *bytes, size_t size, size_t count, FILE *stream) {
    char path[NAME];
    if (!inner_file(fileno(stream), path)) return REAL(fwrite)(bytes, size, count, stream);
    struct step step = begin(WRITE, path, NULL);
    size_t written = 0;
    if (step.verdict != FAIL) written = REAL(fwrite)(bytes, size, step.verdict == SHORT ? count / 2 : count, stream);
    end(step, written > 0);
    return written;
}
/* What is still in the buffer is written by these two. */
static struct step pending(FILE *stream) {
    char path[NAME];
    if (!stream || !ARMED || !__fpending(stream) || !inner_file(fileno(stream), path)) return (struct step){PASS, 0};
    struct step step = begin(WRITE, path, NULL);
    if (step.verdict != RUN) __fpurge(stream);
    return step;
}
int fflush(FILE *stream) {
    struct step step = pending(stream);
    int result = step.verdict == FAIL || step.verdict == SHORT ? EOF : REAL(fflush)(stream);
    if (step.verdict != PASS) end(step, !result);
    return result;
}
int fclose(FILE *stream) {
    struct step step = pending(stream);
    int failed = step.verdict == FAIL || step.verdict == SHORT, result = REAL(fclose)(stream);
    if (failed) errno = control->error;
    if (step.verdict != PASS) end(step, !failed);
    return failed ? EOF : result;
}

int ftruncate(int file, off_t size) {
    char path[NAME];
    COUNTED(int, inner_file(file, path), TRUNCATE, path, NULL, -1, REAL(ftruncate)(file, size));
}
int ftruncate64(int file, off64_t size) {
    char path[NAME];
    COUNTED(int, inner_file(file, path), TRUNCATE, path, NULL, -1, REAL(ftruncate64)(file, size));
}
int truncate(const char *name, off_t size) {
    char path[NAME];
    COUNTED(int, inner_path(AT_FDCWD, name, path), TRUNCATE, path, NULL, -1, REAL(truncate)(name, size));
}
int truncate64(const char *name, off64_t size) {
    char path[NAME];
    COUNTED(int, inner_path(AT_FDCWD, name, path), TRUNCATE, path, NULL, -1, REAL(truncate64)(name, size));
}

/* What the file holds now is what survives: disk.py reads it from store/<number of the operation>. */
static int store(int file, int64_t at) {
    char name[NAME + 32], link[64], bytes[65536];
    struct stat found;
    if (fstat(file, &found) || S_ISDIR(found.st_mode) || !control->keep) return 0;
    snprintf(name, sizeof name, "%s/%ld", control->store, (long)at);
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    int from = REAL(open)(link, O_RDONLY), to = REAL(open)(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (from < 0 || to < 0) abort();
    for (ssize_t size; (size = read(from, bytes, sizeof bytes)) > 0;)
        if (REAL(write)(to, bytes, size) != size) abort();
    close(from);
    close(to);
    return 0;
}
static int synced(int file, const char *path) {
    struct stat found;
    struct step step = begin(!fstat(file, &found) && S_ISDIR(found.st_mode) ? FSYNC_FOLDER : FSYNC, path, NULL);
    int result = step.verdict == RUN ? store(file, step.at) : -1;
    end(step, !result);
    return result;
}
int fsync(int file) {
    char path[NAME];
    return inner_file(file, path) ? synced(file, path) : REAL(fsync)(file);
}
int fdatasync(int file) {
    char path[NAME];
    return inner_file(file, path) ? synced(file, path) : REAL(fdatasync)(file);
}

#define MAPPED(file) \
    if ((protection & PROT_WRITE) && (flags & MAP_SHARED) && inner_file(file, (char[NAME]){0})) control->mapped++
void *mmap(void *start, size_t size, int protection, int flags, int file, off_t at) {
    MAPPED(file);
    return (void *)syscall(SYS_mmap, start, size, protection, flags, file, at);
}
void *mmap64(void *start, size_t size, int protection, int flags, int file, off64_t at) {
    MAPPED(file);
    return (void *)syscall(SYS_mmap, start, size, protection, flags, file, at);
}

/* ---- folders ---- */

#define MOVED(kind, from_at, from, to_at, to, call)                                                            \
    do {                                                                                                       \
        char inner[NAME], other[NAME];                                                                          \
        int inside = inner_path(from_at, from, inner), arrives = inner_path(to_at, to, other);                  \
        if (inside != arrives) abort(); /* nothing is moved into the box or out of it */                       \
        COUNTED(int, inside && exists(from_at, from), kind, inner, other, -1, call);                            \
    } while (0)

int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    if (ARMED && (flags & RENAME_EXCHANGE)) abort();
    MOVED(RENAME, a, from, b, to, (int)syscall(SYS_renameat2, a, from, b, to, flags));
}
int renameat(int a, const char *from, int b, const char *to) { return renameat2(a, from, b, to, 0); }
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
int link(const char *from, const char *to) { MOVED(LINK, AT_FDCWD, from, AT_FDCWD, to, REAL(link)(from, to)); }
int linkat(int a, const char *from, int b, const char *to, int flags) {
    MOVED(LINK, a, from, b, to, REAL(linkat)(a, from, b, to, flags));
}

#define REMOVED(kind, at, name, call)                                                                     \
    do {                                                                                                  \
        char inner[NAME];                                                                                  \
        COUNTED(int, inner_path(at, name, inner) && exists(at, name), kind, inner, NULL, -1, call);         \
    } while (0)

int unlink(const char *path) { REMOVED(UNLINK, AT_FDCWD, path, REAL(unlink)(path)); }
int rmdir(const char *path) { REMOVED(RMDIR, AT_FDCWD, path, REAL(rmdir)(path)); }
int remove(const char *path) { REMOVED(UNLINK, AT_FDCWD, path, REAL(remove)(path)); }
int unlinkat(int at, const char *path, int flags) {
    REMOVED(flags & AT_REMOVEDIR ? RMDIR : UNLINK, at, path, REAL(unlinkat)(at, path, flags));
}

int mkdirat(int at, const char *name, mode_t mode) {
    char inner[NAME];
    COUNTED(int, inner_path(at, name, inner) && !exists(at, name), MKDIR, inner, NULL, -1, REAL(mkdirat)(at, name, mode));
}
int mkdir(const char *name, mode_t mode) {
    char inner[NAME];
    COUNTED(int, inner_path(AT_FDCWD, name, inner) && !exists(AT_FDCWD, name), MKDIR, inner, NULL, -1, REAL(mkdir)(name, mode));
}
int symlinkat(const char *target, int at, const char *name) {
    if (inner_path(at, name, (char[NAME]){0})) abort(); /* disk.py knows of none */
    return REAL(symlinkat)(target, at, name);
}
int symlink(const char *target, const char *name) {
    if (inner_path(AT_FDCWD, name, (char[NAME]){0})) abort();
    return REAL(symlink)(target, name);
}

/* ---- loading ---- */

static void trapped(int number, siginfo_t *info, void *context) {
    int saved = errno;
    (void)number, (void)info;
#ifdef __x86_64__
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int failed = renameat(registers[REG_RDI], (char *)registers[REG_RSI], registers[REG_RDX], (char *)registers[REG_R10]);
    registers[REG_RAX] = failed ? -errno : 0;
#else
    unsigned long long *registers = ((ucontext_t *)context)->uc_mcontext.regs;
    int failed = renameat(registers[0], (char *)registers[1], registers[2], (char *)registers[3]);
    registers[0] = failed ? -errno : 0;
#endif
    errno = saved;
}

static int trap_renameat(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    return sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("FAULTS_CONTROL");
    int descriptor = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (descriptor < 0) return;
    void *memory = (void *)syscall(SYS_mmap, NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    syscall(SYS_close, descriptor);
    if (memory == MAP_FAILED || trap_renameat()) abort();
    control = memory;
}
