/** Stacks of the bundle that is made at installation, with the places in the sources. */
import { readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { dirname, join } from 'node:path'

/** A place in the bundle: its file without ending, line and column. Its length is bounded, since a stack begins with a message of any kind. */
const BUNDLE_PLACE = /((?:[^\s()]{1,500}\/)?dist\/gatehouse)\.js:(\d+):(\d+)/g
const BUNDLE = 'dist/gatehouse.js:'

/** Its map is read with the first stack that needs it; undefined: there is none that can be read. */
const maps = new Map<string, SourceMap | undefined>()

/** The stack as it is where it does not come from a bundle, or its map cannot be read. */
export function sourceStack(stack: string | undefined): string | undefined {
  if (!stack?.includes(BUNDLE)) return stack
  return stack.replace(BUNDLE_PLACE, (place: string, bundle: string, line: string, column: string) => {
    if (!maps.has(bundle)) maps.set(bundle, readMap(`${bundle}.map`))
    const entry = maps.get(bundle)?.findEntry(Number(line) - 1, Number(column) - 1)
    if (!entry || !('originalSource' in entry)) return place
    return `${join(dirname(bundle), entry.originalSource)}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
  })
}

function readMap(file: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(file, 'utf8')) as SourceMapPayload)
  } catch {
    return undefined
  }
}
