/** Functions of the system that the runtime has no call for. Linux only. */
import { dlopen } from 'bun:ffi'

/** The C library of most distributions, and that of Alpine. */
const LIBRARIES = ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`]

export type Libc = NonNullable<ReturnType<typeof openLibc>>

/** Undefined where it is not found. */
export function openLibc() {
  for (const library of LIBRARIES) {
    try {
      return dlopen(library, {
        setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
        shutdown: { args: ['i32', 'i32'], returns: 'i32' },
        sched_setscheduler: { args: ['i32', 'i32', 'ptr'], returns: 'i32' },
      }).symbols
    } catch {
      // The other one, or none.
    }
  }
  return undefined
}
