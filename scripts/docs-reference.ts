/**
 * Writes the generated pages of the manual, docs/manual/reference/*.md, its index, docs/manual/README.md, and the types
 * of the console, console/src/api/types.ts, from the code: `npm run docs:reference`. test/reference.test.ts fails while they are out of date.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { consoleTypes } from './reference/console-types.ts'
import { manualIndex } from './reference/manual-index.ts'
import { pagesWithTables } from './reference/page-tables.ts'
import { referencePages } from './reference/pages.ts'

const ROOT = join(import.meta.dir, '..')
const MANUAL = join(ROOT, 'docs/manual')

const write = ({ path, text }: { path: string; text: string }) => {
  mkdirSync(dirname(join(MANUAL, path)), { recursive: true })
  writeFileSync(join(MANUAL, path), text)
  process.stdout.write(`${relative(ROOT, join(MANUAL, path))}\n`)
}

for (const page of [...(await referencePages()), ...pagesWithTables(), await consoleTypes()]) write(page)
// After the pages: the index lists them too.
write(await manualIndex())
