/** Every command's help, from the command line itself. */
import { join } from 'node:path'

const MAIN = join(import.meta.dir, '../../src/main.ts')

export async function commandHelps(): Promise<{ name: string; help: string }[]> {
  const overview = await help([])
  const [, list = ''] = /^Commands:\n([\s\S]*?)\n\n/m.exec(overview) ?? []
  const names = [...list.matchAll(/^ {2}(\w+) {2,}/gm)].map(([, name = '']) => name)
  const all = [[], ...names.map((name) => [name]), ['models', 'import']]
  return Promise.all(all.map(async (words) => ({ name: ['gatehouse', ...words].join(' '), help: await help(words) })))
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
