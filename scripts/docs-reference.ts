/**
 * Writes the generated pages of the manual, docs/manual/reference/*.md, and its index, docs/manual/README.md, from the
 * code: `npm run docs:reference`. test/reference.test.ts fails while they are out of date.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { manualIndex } from './reference/manual-index.ts'
import { pagesWithTables } from './reference/page-tables.ts'
import { referencePages } from './reference/pages.ts'

const MANUAL = join(import.meta.dir, '../docs/manual')

const write = ({ path, text }: { path: string; text: string }) => {
  mkdirSync(dirname(join(MANUAL, path)), { recursive: true })
  writeFileSync(join(MANUAL, path), text)
  process.stdout.write(`docs/manual/${path}\n`)
}

for (const page of [...(await referencePages()), ...pagesWithTables()]) write(page)
// After the pages: the index lists them too.
write(await manualIndex())
