/** Writes every command's help for the manual, from the command line itself; what commands share is there once. */
import { join } from 'node:path'
import { ACCOUNT_FLAGS_HELP } from '../../src/cli/account-flags.ts'
import { STORE_OPTIONS_HELP } from '../../src/cli/accounts.ts'
import { API_OPTIONS_HELP } from '../../src/cli/admin-api.ts'

const MAIN = join(import.meta.dir, '../../src/main.ts')

export const SHARED_OPTIONS = `${API_OPTIONS_HELP}\n${STORE_OPTIONS_HELP}`

export async function commandHelps(): Promise<{ name: string; help: string }[]> {
  const overview = await help([])
  const [, list = ''] = /^Commands:\n([\s\S]*?)\n\n/m.exec(overview) ?? []
  const names = [...list.matchAll(/^ {2}(\w+) {2,}/gm)].map(([, name = '']) => name)
  const all = [...names.map((name) => [name]), ['models', 'import']].sort()
  return Promise.all(
    all.map(async (words) => ({ name: ['gatehouse', ...words].join(' '), help: withoutShared(await help(words)) })),
  )
}

const withoutExamples = (text: string): string => text.replace(/\n*^Examples:\n(?: .*\n)*/m, '\n')

/** Options that mean the same for every command. */
const SHARED = [
  ...SHARED_OPTIONS.split('\n'),
  '--data-dir <directory> the data directory (default: GATEHOUSE_DATA_DIR, then ./data)',
  '--config <file> the configuration file (default: GATEHOUSE_CONFIG, then ./gatehouse.yaml)',
].map(wordsOf)

/** Where a command works follows from its shared options. */
const PLACES =
  /Works\s(?:on\s(?:a|the)\srunning\sgateway\s[^.]*?(?:store|within\sa\ssecond)|on\sthe\sstore,\swhether\sor\snot\sa\sgateway\sis\srunning|whether\sor\snot\sa\sgateway\sis\srunning)\.\s?/g

/** Without the examples and what all commands share: the names of shared options follow at the end. */
function withoutShared(text: string): string {
  const lines = withoutExamples(text.replace(ACCOUNT_FLAGS_HELP, accountFlagsHelp(text))).split('\n')
  const isShared = (line: string) => SHARED.includes(wordsOf(line))
  const names = lines.filter(isShared).map((line) => wordsOf(line).split(' ')[0])
  const own = lines.filter((line) => !isShared(line)).join('\n')
  const rest = withoutUsage(own.replaceAll(PLACES, ''))
    .replace(/\n*^Options:\n\n*(?! )/m, '\n\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
  if (names.length === 0) return rest
  return `${rest}\n\nShared options: ${names.length === SHARED_OPTIONS.split('\n').length ? 'all' : names.join(' ')}`
}

/** What the list of its commands says as well. */
const withoutUsage = (text: string): string =>
  text.includes('\nCommands:\n') && !/^Usage:.*\n +gatehouse/.test(text)
    ? text.replace(/^Usage: .*\n+/, '').replace(/^Commands:\n/m, '')
    : text

function wordsOf(line: string): string {
  return line.trim().replaceAll(/\s+/g, ' ')
}

/** `gatehouse project` comes first; what `gatehouse token` repeats is left out there. */
const accountFlagsHelp = (text: string): string =>
  text.startsWith('Usage: gatehouse token')
    ? '      --models ... --end-user-budget\n                             as for gatehouse project'
    : ACCOUNT_FLAGS_HELP

async function help(words: string[]): Promise<string> {
  const child = Bun.spawn([process.execPath, MAIN, ...words, '--help'], {
    env: { PATH: process.env.PATH ?? '' },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`gatehouse ${words.join(' ')} --help failed: ${err}`)
  return out
}
