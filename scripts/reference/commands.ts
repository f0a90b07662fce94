/** Writes every command for the manual, from its help: actions with their meaning, options by name, since how-to guides and `--help` explain them. */
import { join } from 'node:path'

const MAIN = join(import.meta.dir, '../../src/main.ts')

export async function commandHelps(): Promise<{ name: string; help: string }[]> {
  const overview = await help([])
  const [, list = ''] = /^Commands:\n([\s\S]*?)\n\n/m.exec(overview) ?? []
  const names = [...list.matchAll(/^ {2}(\w+) +/gm)].map(([, name = '']) => name)
  const all = [...names.map((name) => [name]), ['models', 'import']].sort()
  return Promise.all(
    all.map(async (words) => ({
      name: ['gatehouse', ...words].join(' '),
      help: withoutProse(inShort(await help(words))),
    })),
  )
}

/** Where a command works follows from its shared options. */
const PLACES =
  /Works\s(?:on\s(?:a|the)\srunning\sgateway\s[^.]*?(?:store|within\sa\ssecond)|on\sthe\sstore,\swhether\sor\snot\sa\sgateway\sis\srunning|whether\sor\snot\sa\sgateway\sis\srunning)\.\s?/g

/** Without examples, headings and what options mean: their names follow the action or the text that they belong to. */
function inShort(text: string): string {
  const lines = withoutUsage(text.replace(/\n*^Examples:\n(?: .*\n)*/m, '\n').replaceAll(PLACES, '')).split('\n')
  const kept: string[] = []
  let indent: number | undefined
  for (const line of lines) {
    const [, spaces = '', flags = ''] = /^( {2,})(--\S.*?)(?: {2,}.*)?$/.exec(line) ?? []
    const isMeaning = indent !== undefined && line.search(/\S/) > indent
    if (flags !== '') kept.push(...named(kept, `${spaces}${flags.split('  ')[0]}`))
    else if (!isMeaning && !/^(?:Options|Commands):$/.test(line)) kept.push(line)
    if (flags !== '') indent = spaces.length
    else if (!isMeaning) indent = undefined
  }
  return kept
    .map((line) => (/^ {12,}\[|gatehouse /.test(line) ? line.replaceAll(/ \[[^\]]*\]/g, '') : line))
    .filter((line) => !/^ {12,}$/.test(line))
    .map((line) => wrapped(line.replace(SHARED, 'shared').replace(LOCAL, 'local').replace(LOCAL_TOO, 'local')))
    .join('\n')
    .replaceAll(/^ {2}(?=--|(?:shared|local)$)/gm, 'Options: ')
    .replaceAll(/\n{3,}/g, '\n\n')
    .replaceAll(/^\n+|\s+$/g, '')
}

const LOCAL = '--data-dir <directory> --config <file> --json'
const LOCAL_TOO = '--config <file> --data-dir <directory> --json'
const SHARED = `--url <address> --insecure ${LOCAL}`

/** The meaning of an action, with the lines on which it goes on. */
const MEANING = /^( {2}\S.*? {2,}| {2}\S+ <\S+> )(\S.*(?:\n {12,}[^\s-].*)*)/gm
const firstPart = (_: string, name: string, meaning: string): string =>
  `${name}${meaning.replaceAll(/\n +/g, ' ').replace(/[.;] .*|\.$/, '')}`

/** Actions say what a command does; where it has none, the first sentence of its help does. The rest is in `--help`. */
function withoutProse(text: string): string {
  const parts = text.split('\n\n').map((part) => {
    const isUsage = /^(?:Usage: |Options: |gatehouse | )/.test(part)
    const [, prose = '', actions = ''] = /^((?:(?! {2}).*\n?)*)([\s\S]*)$/.exec(part) ?? []
    return isUsage ? { prose: '', actions: part } : { prose, actions }
  })
  const hasActions = parts.some(({ actions }) => /^ {2}\w/.test(actions))
  const [first = ''] = parts.map(({ prose }) => prose.trim()).filter(Boolean)
  const about = hasActions ? '' : (/^[\s\S]*?[.:](?=\s|$)/.exec(first)?.[0] ?? '').replace(/:$/, '.')
  return [about, ...parts.map(({ actions }) => actions.replaceAll(MEANING, firstPart))].filter(Boolean).join('\n\n')
}

/** A line of options may be long. */
function wrapped(line: string): string {
  if (!/^ *--/.test(line)) return line
  const indent = ' '.repeat(line.search(/\S/))
  const lines: string[] = []
  for (const option of line.trim().split(/ (?=--|(?:shared|local)$)/)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + option.length < 110) lines[lines.length - 1] = `${last} ${option}`
    else lines.push(`${indent}${option}`)
  }
  return lines.join(`\n${indent.length === 2 ? ' '.repeat(7) : ''}`)
}

/** Options of one place share a line. */
function named(kept: string[], option: string): string[] {
  const last = kept.at(-1) ?? ''
  const isSamePlace = /^ *--/.test(last) && last.search(/\S/) === option.search(/\S/)
  if (isSamePlace) kept.pop()
  return [isSamePlace ? `${last} ${option.trim()}` : option]
}

/** The usage is left out where the list of actions or options has it all: it names arguments or another command. */
function withoutUsage(text: string): string {
  const [usage = '', words = '', rest = ''] = /^Usage: (gatehouse(?: [a-z]+)+)(.*\n(?: +.*\n)*)\n*/.exec(text) ?? []
  const body = text.slice(usage.length)
  if (/\n +gatehouse/.test(rest) || (rest.trim().startsWith('<') && !body.startsWith('Commands:'))) {
    return text.includes('\nCommands:\n') && !/\n +gatehouse/.test(rest) ? body : text
  }
  const isOther = words.split(' ').length > 2 && words !== 'gatehouse models import'
  return isOther ? `${words} [options]\n\n${body}` : body
}

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
