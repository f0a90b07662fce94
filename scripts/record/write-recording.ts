/** Writes a recording into the folder of its kind, and says in its README where the files come from. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Recording } from './record-provider.ts'

const FIXTURES = join(import.meta.dir, '../../test/fixtures')

type WriteParts = {
  recording: Recording
  /** The preset or kind that was named. */
  source: string
  model: string
  /** Default: the folder of the kind. */
  out?: string | undefined
}

/** The paths of the files that were written. */
export function writeRecording({ recording, source, model, out }: WriteParts): string[] {
  const { kind, files } = recording
  const folder = out ?? join(FIXTURES, kind)
  mkdirSync(folder, { recursive: true })
  const paths = files.map(({ name, text }) => {
    const path = join(folder, `recorded-${source}-${name}`)
    writeFileSync(path, text)
    return path
  })
  const readme = join(folder, 'README.md')
  const before = existsSync(readme) ? withoutSection(readFileSync(readme, 'utf8'), source) : `# ${kind}\n`
  const rows = files.map(({ name, status }) => `| \`recorded-${source}-${name}\` | ${status} |`)
  const date = new Date().toISOString().slice(0, 10)
  writeFileSync(
    readme,
    `${before.trimEnd()}\n\n${headingOf(source)}\n\nSource: recorded on ${date} from "${source}", model ${model}, by \`npm run record\`. Keys, ids of
requests and accounts, addresses and pictures are replaced.\n\n| file | status |\n|---|---|\n${rows.join('\n')}\n`,
  )
  return paths
}

const headingOf = (source: string) => `## Recorded from ${source}`

/** A new recording replaces the section of the last one. */
function withoutSection(text: string, source: string): string {
  const at = text.indexOf(headingOf(source))
  if (at === -1) return text
  const next = text.indexOf('\n## ', at + 1)
  return text.slice(0, at) + (next === -1 ? '' : text.slice(next + 1))
}
