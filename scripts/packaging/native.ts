/** Loads a library of machine code that an executable holds packed. */
import { ptr } from 'bun:ffi'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { openFunctions } from '../../src/kit/libc.ts'
import { readPacked } from '../../src/kit/resources.ts'

/** The system opens only a file, which is needed no longer once it is loaded. */
export function loadNative(name: string): unknown {
  const bytes = readPacked(name) ?? ''
  try {
    return fromDirectory(name, bytes)
  } catch (thrown) {
    // A container may have no such directory, or one of which nothing may be executed.
    const file = process.platform === 'linux' ? memoryFile(name) : -1
    if (file < 0) throw thrown
    writeFileSync(file, bytes)
    return loaded(`/proc/self/fd/${file}`)
  }
}

function fromDirectory(name: string, bytes: string | Uint8Array): unknown {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-library-'))
  try {
    const file = join(directory, name)
    writeFileSync(file, bytes)
    return loaded(file)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** It stays open: the system takes a later library of the same path for this one. */
function memoryFile(name: string): number {
  const CLOSE_ON_EXEC = 1
  const create = openFunctions({ memfd_create: { args: ['ptr', 'u32'], returns: 'i32' } })?.memfd_create
  return create?.(ptr(Buffer.from(`${name}\0`)), CLOSE_ON_EXEC) ?? -1
}

function loaded(file: string): unknown {
  const library = { exports: {} }
  process.dlopen(library, file)
  return library.exports
}
