/** The pages of the manual, found by their base name in whichever folder of docs/manual they are. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

export const MANUAL_DIRECTORY = join(import.meta.dir, '../../docs/manual')

/** The paths of all pages inside docs/manual, such as `how-to/webhooks.md`; not its index, README.md. */
export const manualPages = (): string[] =>
  readdirSync(MANUAL_DIRECTORY, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md') && basename(path) !== 'README.md')
    .sort()

/** The whole path of the page with this base name (`webhooks.md`), of which there is exactly one. */
export function manualPath(name: string): string {
  const [path, another] = manualPages().filter((path) => basename(path) === name)
  if (!path || another) throw new Error(`docs/manual has ${another ? 'several pages' : 'no page'} named ${name}.`)
  return join(MANUAL_DIRECTORY, path)
}

export const manualPage = (name: string): string => readFileSync(manualPath(name), 'utf8')
