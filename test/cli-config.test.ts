/** `gatehouse config`: what it prints, and what it writes. */
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../src/cli/commands/config.ts'
import { collectingTerminal } from './kit/terminal.ts'

const directories: string[] = []
afterEach(() => {
  for (const path of directories.splice(0)) rmSync(path, { recursive: true })
})

const TEXT = "providers:\n  acme: { base_url: 'https://api.acme.test/v1', key: '${ACME_KEY}' }\n"
const KEY = 'sk-secret-0123456789'

function setUp(text?: string) {
  const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
  directories.push(cwd)
  const file = join(cwd, 'gatehouse.yaml')
  if (text !== undefined) writeFileSync(file, text)
  const config = async (...args: string[]) => {
    const { terminal, printed } = collectingTerminal({ cwd, environment: { ACME_KEY: KEY } })
    const code = await run(args, terminal)
    return { ...printed, code }
  }
  const propose = (next: string) => writeFileSync(join(cwd, 'new.yaml'), next)
  return { file, config, propose }
}

describe('gatehouse config', () => {
  test('show prints each setting with its value and its origin', async () => {
    const { config, file } = setUp(TEXT)
    const { out, code } = await config('show', '--changed')
    expect(code).toBe(0)
    const lines = out
      .trim()
      .split('\n')
      .map((line) => line.split(/ {2,}/))
    expect(lines).toEqual([
      ['SETTING', 'VALUE', 'FROM'],
      ['providers.acme.base_url', 'https://api.acme.test', `${file}:2`],
      ['providers.acme.key', '${ACME_KEY}', `${file}:2`],
    ])
    const { settings } = JSON.parse((await config('show', '--json')).out)
    expect(settings).toContainEqual({ path: 'sandbox', value: true, source: { from: 'default' } })
    expect(JSON.stringify(settings)).not.toContain(KEY)
  })

  test('diff compares by setting', async () => {
    const { config, propose } = setUp(TEXT)
    propose(`${TEXT}server: { port: 1 }\nsandbox: false\n`)
    expect(await config('diff', 'new.yaml')).toEqual({
      out: '~ server.port: 8787 -> 1\n~ sandbox: true -> false\nA restart is needed for server.port.\n',
      err: '',
      code: 0,
    })
    propose(TEXT)
    expect((await config('diff', 'new.yaml')).out).toBe('new.yaml changes nothing.\n')
  })

  test('apply writes what is valid, twice the same', async () => {
    const { config, propose, file } = setUp(TEXT)
    const next = `${TEXT}sandbox: false\n`
    propose(next)
    expect((await config('apply', 'new.yaml')).out).toBe(
      `~ sandbox: true -> false\n${file} is written. The text before is in ${file}.bak.\n`,
    )
    expect(readFileSync(file, 'utf8')).toBe(next)
    expect((await config('apply', 'new.yaml')).out).toBe(`${file} is as it was.\n`)
    expect(JSON.parse((await config('apply', 'new.yaml', '--json')).out)).toMatchObject({ file, written: false })
  })

  test.each(['validate', 'diff', 'apply'])('%s reports the problems of a file under its name', async (command) => {
    const { config, propose, file } = setUp(TEXT)
    propose('server: { port: many }\n')
    const { err, code } = await config(command, 'new.yaml')
    expect([code, err]).toEqual([
      1,
      'new.yaml:1:17  server.port: found "many" (string), must be an integer\n\nnew.yaml is not valid; nothing was changed.\n',
    ])
    expect(JSON.parse((await config(command, 'new.yaml', '--json')).out)).toMatchObject({
      valid: false,
      problems: [{ file: 'new.yaml', line: 1, path: 'server.port' }],
    })
    expect(readFileSync(file, 'utf8')).toBe(TEXT)
  })

  test('validate accepts a file that a gateway can start with, and no other', async () => {
    const { config, propose } = setUp()
    propose(TEXT)
    expect(await config('validate', 'new.yaml')).toEqual({ out: 'new.yaml is valid.\n', err: '', code: 0 })
    propose('providers: { p: { kind: azure } }\n')
    const { err, code } = await config('validate', 'new.yaml')
    expect([code, err.includes('new.yaml')]).toEqual([1, true])
  })

  test('rejects a file that is not there, and commands that it does not know', async () => {
    const { config } = setUp()
    await expect(config('apply', 'none.yaml')).rejects.toThrow('none.yaml cannot be read: there is no such file')
    await expect(config('aply')).rejects.toThrow('did you mean "apply"')
    await expect(config()).rejects.toThrow('needs a command: show, validate, diff, apply')
  })
})
