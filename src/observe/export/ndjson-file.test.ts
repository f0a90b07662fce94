import { afterEach, describe, expect, it } from 'bun:test'
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNdjsonFile } from './ndjson-file.ts'

const directories: string[] = []
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

function setUp(settings: { max_bytes?: number; max_files?: number; daily?: boolean } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-ndjson-'))
  directories.push(directory)
  const path = join(directory, 'logs', 'requests.ndjson')
  let now = Date.now()
  const open = () => createNdjsonFile({ path, max_bytes: 30, max_files: 2, daily: false, ...settings }, () => now)
  return {
    path,
    open,
    advance: (ms: number) => {
      now += ms
    },
    files: () => readdirSync(join(directory, 'logs')).sort(),
  }
}

describe('the NDJSON file', () => {
  it('appends lines, continues an earlier file, and is readable by its owner only', async () => {
    const { open, path } = setUp()
    await open().append(['{"a":1}', '{"a":2}'])
    await open().append(['{"a":3}'])
    expect(readFileSync(path, 'utf8')).toBe('{"a":1}\n{"a":2}\n{"a":3}\n')
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('begins a new line where a process was killed within one', async () => {
    const { open, path } = setUp()
    await open().append(['{"a":1}'])
    appendFileSync(path, '{"a":')
    const file = open()
    await file.append(['{"a":3}'])
    await file.append(['{"a":4}'])
    expect(readFileSync(path, 'utf8')).toBe('{"a":1}\n{"a":\n{"a":3}\n{"a":4}\n')
  })

  it('starts a new file before the bound, and keeps the number of complete ones', async () => {
    const { open, path, files, advance } = setUp()
    const file = open()
    for (let count = 0; count < 5; count++) {
      await file.append(['{"text":"0123456789"}'])
      advance(1_000)
    }
    expect(files()).toHaveLength(3)
    expect(readFileSync(path, 'utf8').length).toBeLessThanOrEqual(30)
    await file.append(['{}'])
    expect(files()).toHaveLength(3)
  })

  it('starts a new file on another day', async () => {
    const { open, path, files, advance } = setUp({ daily: true, max_bytes: 1_000 })
    const file = open()
    await file.append(['{"a":1}'])
    advance(86_400_000)
    await file.append(['{"a":2}'])
    expect([files().length, readFileSync(path, 'utf8')]).toEqual([2, '{"a":2}\n'])
  })

  it('overwrites no complete file where the clock stands', async () => {
    const { open, files, path } = setUp({ max_files: 5 })
    const file = open()
    for (const line of ['{"line":"one, of 25 bytes"}', '{"line":"two, of 25 bytes"}', '{"line":"three"}']) {
      await file.append([line])
    }
    const contents = files().map((name) => readFileSync(join(path, '..', name), 'utf8'))
    expect(contents.sort()).toEqual([
      '{"line":"one, of 25 bytes"}\n',
      '{"line":"three"}\n',
      '{"line":"two, of 25 bytes"}\n',
    ])
  })
})
