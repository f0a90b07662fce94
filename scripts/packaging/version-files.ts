/** Writes the version of a release into the files that have it, and reads its section of the changelog. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/

export function checkVersion(version: string | undefined): string {
  if (version !== undefined && VERSION.test(version)) return version
  throw new Error(
    `${version ?? 'no version'}: give a version as in semver.org, such as 0.2.0: npm run release -- 0.2.0`,
  )
}

/** Sets `version` and dates its section of the changelog, which is "Unreleased" before. Returns the files that changed. */
export function writeVersion({ root, version, date }: { root: string; version: string; date: string }): string[] {
  const edits: Record<string, (text: string) => string> = {
    'package.json': (text) => text.replace(/("version": ")[^"]+/, `$1${version}`),
    'package-lock.json': (text) => {
      const lock = JSON.parse(text)
      lock.version = version
      lock.packages[''].version = version
      return `${JSON.stringify(lock, null, 2)}\n`
    },
    'deploy/helm/gatehouse/Chart.yaml': (text) => text.replaceAll(/^((?:appV|v)ersion: ).+$/gm, `$1${version}`),
    'CHANGELOG.md': (text) => dated(text, version, date),
  }
  return Object.entries(edits).flatMap(([name, edit]) => {
    const file = join(root, name)
    const before = readFileSync(file, 'utf8')
    const after = edit(before)
    if (after === before) return []
    writeFileSync(file, after)
    return [name]
  })
}

function dated(text: string, version: string, date: string): string {
  const heading = `## [${version}] - `
  const lines = text.split('\n')
  if (lines.some((line) => line.startsWith(heading) && !line.endsWith('unreleased'))) return text
  const at = lines.findIndex((line) => line === `${heading}unreleased` || /^## \[unreleased\]/i.test(line))
  if (at < 0)
    throw new Error(`CHANGELOG.md has neither "## [${version}]" nor "## [Unreleased]": write what has changed`)
  lines[at] = heading + date
  return lines.join('\n')
}

/** What the changelog says of a version, without its heading. */
export function changesOf(root: string, version: string): string {
  const [, section = ''] = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(`\n## [${version}]`)
  const body = section.slice(section.indexOf('\n')).split('\n## [')[0]?.trim() ?? ''
  if (body === '') throw new Error(`CHANGELOG.md says nothing of ${version}`)
  return `${body}\n`
}

/** What differs from the commit, new files included: a release packs whole directories, such as the chart. Empty: nothing. */
export const uncommitted = (root: string): string =>
  execFileSync('git', ['-C', root, 'status', '--porcelain', '--untracked-files=all'], { encoding: 'utf8' }).trimEnd()
