/**
 * What each page of the console costs over a store with a million requests, 500 models and 10,000 tokens: the time until
 * it is settled in Chromium, its calls of the admin API, the bytes of their answers, and the rows that the store returned.
 * `--size wide`: with 50,000 requests. Ends with status 1 where a page is above its bounds.
 */
import { parseArgs } from 'node:util'
import { pages } from '../console/src/pages/pages.ts'
import { isSize } from '../scripts/fill-store.ts'
import { boundsBroken, openMeasured } from '../test/console/support/measured.ts'

const { values } = parseArgs({ options: { size: { type: 'string', default: 'large' } } })
if (!isSize(values.size)) throw new Error(`"${values.size}" is no size of a filled store.`)
const opened = await openMeasured(
  values.size,
  pages.map(({ path }) => path),
)
const cell = (value: number | string): string => String(value).padStart(8)
const print = (line: string) => void process.stdout.write(`${line}\n`)

print(`${['ms', 'calls', 'KB', 'largest', 'queries', 'rows'].map(cell).join('')}  page`)
for (const path of opened.paths) {
  const page = await opened.measure(path)
  const kilobytes = (bytes: number) => Math.round(bytes / 1_000)
  const { ms, calls, bytes, largest, statements, rows } = page
  const figures = [Math.round(ms), calls.length, kilobytes(bytes), kilobytes(largest.bytes), statements, rows]
  const broken = boundsBroken(page)
  if (broken.length > 0) process.exitCode = 1
  print(`${figures.map(cell).join('')}  ${path}${broken.map((fault) => `\n        ${fault}`).join('')}`)
}
await opened.close()
