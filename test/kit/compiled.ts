/** Programs of tests as executables: one loads its modules in a tenth of the time that its sources take. */
import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { places, ROOT } from '../../scripts/packaging/program.ts'

const DIRECTORY = join(ROOT, 'dist/test-programs')
const known = new Map<string, Promise<string>>()

/** The executable of `test/kit/<name>.ts`, made once for a run of tests. Its worker threads load their sources. */
export function compiled(name: string): Promise<string> {
  const program = known.get(name) ?? build(name)
  known.set(name, program)
  return program
}

async function build(name: string): Promise<string> {
  mkdirSync(DIRECTORY, { recursive: true })
  const unfinished = join(DIRECTORY, `${name}.${process.pid}`)
  await Bun.build({
    entrypoints: [join(import.meta.dir, `${name}.ts`)],
    target: 'bun',
    format: 'esm',
    bytecode: true,
    splitting: true,
    minify: { whitespace: true, syntax: true, identifiers: false },
    plugins: [places((worker) => `file://${join(ROOT, worker)}`)],
    compile: { outfile: unfinished, autoloadDotenv: false, autoloadBunfig: false },
  })
  // Another run may be starting the one before it.
  renameSync(unfinished, join(DIRECTORY, name))
  return join(DIRECTORY, name)
}
