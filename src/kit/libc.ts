/** Functions of the system that the runtime has no call for. Linux only. */
import { dlopen, type FFIFunction, ptr } from 'bun:ffi'

/** The C library of most distributions, and that of Alpine. */
const LIBRARIES = ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`]

export type Libc = NonNullable<ReturnType<typeof openLibc>>

export const openLibc = () =>
  openFunctions({
    setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
    shutdown: { args: ['i32', 'i32'], returns: 'i32' },
    sched_setscheduler: { args: ['i32', 'i32', 'ptr'], returns: 'i32' },
  })

/** Of the C library. Undefined where it is not found. */
export function openFunctions<const Functions extends Record<string, FFIFunction>>(functions: Functions) {
  for (const library of LIBRARIES) {
    try {
      return dlopen(library, functions).symbols
    } catch {
      // The other one, or none.
    }
  }
  return undefined
}

/** Code, jump if true, jump if false, value: `struct sock_filter` of <linux/filter.h>. */
export type FilterInstruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number]

/** Of `struct sock_fprog`. */
export const PROGRAM_BYTES = 16
const INSTRUCTION_BYTES = 8

/** `struct sock_fprog`, the count and the address, with the instructions behind it. */
export function filterProgram(instructions: readonly FilterInstruction[]): Uint8Array {
  const buffer = new ArrayBuffer(PROGRAM_BYTES + instructions.length * INSTRUCTION_BYTES)
  const view = new DataView(buffer)
  view.setUint16(0, instructions.length, true)
  view.setBigUint64(8, BigInt(ptr(buffer) + PROGRAM_BYTES), true)
  for (const [index, [code, ifTrue, ifFalse, value]] of instructions.entries()) {
    const start = PROGRAM_BYTES + index * INSTRUCTION_BYTES
    view.setUint16(start, code, true)
    view.setUint8(start + 2, ifTrue)
    view.setUint8(start + 3, ifFalse)
    view.setUint32(start + 4, value, true)
  }
  return new Uint8Array(buffer)
}
