/** Loads a library of machine code that an executable holds packed. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { readPacked } from '../../src/kit/resources.ts'

/** The system opens only a file, which is needed no longer once it is loaded. */
export function loadNative(name: string): unknown {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-library-'))
  try {
    const file = join(directory, name)
    writeFileSync(file, readPacked(name) ?? '')
    const library = { exports: {} }
    process.dlopen(library, file)
    return library.exports
  } finally {
    rmSync(directory, { recursive: true })
  }
}
